import io
import itertools
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_images import make_image, pixels, write_images
from notices import told
from PIL import Image

from labelproof.audit.samples import features_of
from labelproof.data.image_folder import find_images, load_folder
from labelproof.data.images import (
    ImageFiles,
    Look,
    StoredImage,
    UnreadableImageError,
    channel_statistics,
    decode_image,
    examine_image,
    report_odd,
    sample_statistics,
)
from labelproof.data.notices import DataWarning


def encoded(image: Image.Image, kind: str, **options: object) -> StoredImage:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return StoredImage("stored", [stream.getvalue()])


def test_files_come_back_exactly_or_nearly(tmp_path: Path) -> None:
    for suffix in ("bmp", "png", "ppm", "tif"):
        for mode in ("RGB", "L"):
            image = make_image(1, mode=mode)
            path = tmp_path / f"image.{suffix}"
            image.save(path)
            array = ImageFiles([str(path)], mode=mode)[0]
            np.testing.assert_array_equal(array, pixels(image))
            assert array.dtype == np.uint8
            torch.from_numpy(array)  # writable, or torch warns
    image = make_image(2, size=(64, 48))
    for kind in ("JPEG", "WEBP", "GIF"):
        array = decode_image(encoded(image, kind), mode="RGB").astype(int)
        assert array.shape == (3, 48, 64)
        assert np.abs(array - pixels(image)).mean() < 12


def test_the_cameras_orientation_is_applied() -> None:
    upright, how = make_image(3), Image.Transpose
    # How a camera that is held so stores the picture: the inverse of what a viewer does.
    turns = (how.FLIP_LEFT_RIGHT, how.ROTATE_180, how.FLIP_TOP_BOTTOM)
    turns += (how.TRANSPOSE, how.ROTATE_90, how.TRANSVERSE, how.ROTATE_270)
    for orientation, turn in enumerate(turns, start=2):
        exif = Image.Exif()
        exif[0x0112] = orientation
        array = decode_image(encoded(upright.transpose(turn), "PNG", exif=exif), mode="RGB")
        np.testing.assert_array_equal(array, pixels(upright))
    # One that cannot be read is passed over.
    array = decode_image(encoded(upright, "PNG", exif=b"Exif\0\0nonsense"), mode="RGB")
    np.testing.assert_array_equal(array, pixels(upright))


def test_pixels_become_eight_bits_on_white() -> None:
    image = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    array = decode_image(encoded(image, "PNG"), mode="RGB")
    np.testing.assert_array_equal(array[:, 0], [[255, 255], [0, 255], [0, 255]])
    palette = image.convert("P")
    palette.info["transparency"] = palette.getpixel((1, 0))
    array = decode_image(encoded(palette, "PNG"), mode="L")
    assert array[0, 0, 1] == 255
    levels = np.array([[0, 256, 32768, 65535]], np.uint16)
    array = decode_image(encoded(Image.fromarray(levels), "PNG"), mode="L")
    np.testing.assert_array_equal(array[0], [[0, 1, 128, 255]])
    for values in (np.array([[0.5]], np.float32), np.array([[70000]], np.int32)):
        with pytest.raises(UnreadableImageError, match="unknown range"):
            decode_image(encoded(Image.fromarray(values), "TIFF"), mode="L")


def test_files_with_several_pages_are_counted_and_one_is_named() -> None:
    pages = [make_image(number) for number in range(3)]
    for kind, full in itertools.product(("TIFF", "GIF", "WEBP", "PNG"), (False, True)):
        single = encoded(pages[0], kind)
        several = encoded(pages[0], kind, save_all=True, append_images=pages[1:])
        several = StoredImage("stack", [several.content])
        look: Any = partial(examine_image, full=full)
        with pytest.warns(DataWarning, match=r"^x: 2 images have more than one page.* as stack:"):
            report_odd("x", [look(file) for file in (single, several, single, several)])
        report_odd("x", [look(single)] * 2)


def test_the_short_side_is_exact_whatever_the_size() -> None:
    for size in ((400, 300), (300, 400), (31, 17), (20, 20)):
        image = make_image(5, size=size)
        width, height = (round(side * 20 / min(size)) for side in size)
        wanted = pixels(image.resize((width, height), Image.Resampling.BILINEAR)).astype(int)
        for file in (encoded(image, "JPEG", quality=95, subsampling=0), encoded(image, "PNG")):
            array = decode_image(file, mode="RGB", short_side=20)
            assert array.shape == (3, height, width)
            # Decoding at a fraction of the size is another filter, not another picture.
            assert np.abs(array - wanted).mean() < 4


def write_bad_files(folder: Path) -> dict[str, str]:
    """Files that cannot be read, and what is said about each."""
    whole = encoded(make_image(7, size=(200, 150)), "JPEG").content
    (folder / "empty.jpg").touch()
    (folder / "text.png").write_text("not an image at all")
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    portable = encoded(make_image(8), "PNG").content
    (folder / "broken.png").write_bytes(portable[:60] + b"\0" * 40 + portable[100:])
    (folder / "folder.png").mkdir()
    (folder / "link.png").symlink_to(folder / "gone.png")
    (folder / "circle.png").symlink_to(folder / "circle.png")
    return {
        "empty.jpg": "empty",
        "text.png": "not an image",
        "cut.jpg": "truncated",
        "broken.png": "",
        "folder.png": "directory",
        "link.png": "No such file",
        "circle.png": "symbolic links",
    }


def test_files_that_cannot_be_read_are_named_among_good_ones_or_alone(tmp_path: Path) -> None:
    bad = write_bad_files(tmp_path)
    for name, reason in bad.items():
        with pytest.raises(UnreadableImageError, match=rf"image 0: .*{name}: .*{reason}"):
            ImageFiles([str(tmp_path / name)])[0]
    with pytest.raises(UnreadableImageError, match=r"a\\xe9.png: No such file"):
        ImageFiles([str(tmp_path / "a\udce9.png")])[0]
    with pytest.raises(UnreadableImageError, match="null"):
        ImageFiles(["a\0.png"])[0]
    write_images(tmp_path, ["a.png", "z.jpg"])
    names = ["a.png", *bad, "z.jpg"]
    files = [str(tmp_path / name) for name in names]
    full = [examine_image(file, full=True) for file in files]
    problems = [Path(str(each).split(":")[0]).name for each in full if not isinstance(each, Look)]
    assert problems == list(bad)
    # Headers alone do not tell a file that is cut off.
    quick = [isinstance(examine_image(file, full=False), Look) for file in files]
    found = set(itertools.compress(names, quick)) - {"a.png", "z.jpg"}
    assert "cut.jpg" in found
    assert found <= {"cut.jpg", "broken.png"}


def test_images_are_grey_if_all_are_and_know_whether_they_have_one_size(tmp_path: Path) -> None:
    modes = {"L": True, "LA": True, "1": True, "RGB": False}
    files = [encoded(make_image(9, mode=mode), "PNG") for mode in modes]
    looks: Any = [examine_image(file, full=False) for file in files]
    assert [look.grey for look in looks] == list(modes.values())
    exif = Image.Exif()
    exif[0x0112] = 6
    wide, high = encoded(make_image(1, size=(24, 16)), "PNG"), make_image(2, size=(16, 24))
    assert ImageFiles([wide, wide]).one_size
    assert not ImageFiles([wide, encoded(high, "PNG")]).one_size
    # A camera on its side stores what is wide as high.
    assert ImageFiles([wide, encoded(high, "PNG", exif=exif)]).one_size
    assert not ImageFiles([wide, StoredImage("broken", [b""])]).one_size
    assert not ImageFiles([]).one_size


def test_a_few_images_that_change_how_all_are_used_are_named(tmp_path: Path) -> None:
    names = [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(20)]
    write_images(tmp_path, names, size=(32, 32), mode="L")
    odd = tmp_path / "dog" / "odd.png"
    # Grey pixels are grey, however they are stored.
    for suffix, mode in ((".png", "RGBA"), (".tif", "CMYK"), (".png", "P")):
        file = odd.with_suffix(suffix)
        make_image(99, size=(32, 32), mode="L").convert(mode).save(file)
        dataset, messages = told(load_folder, tmp_path, on_error="skip")
        assert (dataset.image_shape, messages) == ((1, 32, 32), [])
        file.unlink()
    for size, mode, said in (
        ((32, 32), "RGBA", r"^\S+: 1 of 41 images is coloured, .*/odd\.png$"),
        ((32, 31), "L", r"^\S+: 1 of 41 images is not of 32x32 pixels as .*/odd\.png$"),
    ):
        make_image(99, size=size).convert(mode).save(odd)
        _, (message,) = told(load_folder, tmp_path, on_error="skip")
        assert re.search(said, message)
    # Where many differ, that is what the data are like.
    for number in range(5):
        make_image(number, size=(32, 30)).save(odd.with_stem(f"odd{number}"))
    assert told(load_folder, tmp_path, on_error="skip")[1] == []


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_nearly_black_images_are_told_and_audited(tmp_path: Path) -> None:
    for number in range(60):
        folder = tmp_path / "dark" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        levels = np.random.default_rng(number).integers(0, 256, (8, 8)).astype(np.uint16)
        Image.fromarray(levels).save(folder / f"{number}.png")  # of 65,536 levels
    with pytest.warns(DataWarning, match="the images are nearly black"):
        dataset = load_folder(tmp_path / "dark", on_error="skip")
    assert features_of(dataset.train, np.arange(60)) is None
    write_images(tmp_path, [".hidden/a/0.png"])
    (tmp_path / "gone.png").symlink_to("nowhere")
    assert len(find_images(tmp_path)) == 60


def test_a_decompression_bomb_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    file = encoded(make_image(10), "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 24 * 16 // 4)
    with pytest.raises(UnreadableImageError, match="pixels"):
        decode_image(file, mode="RGB", short_side=2)
    assert isinstance(examine_image(file, full=False), UnreadableImageError)
    line = encoded(make_image(1, size=(8, 4)), "PNG")
    assert isinstance(examine_image(line, full=False, short_side=8), UnreadableImageError)


def test_formats_that_run_other_programs_are_not_opened(tmp_path: Path) -> None:
    make_image(11).save(tmp_path / "image.eps")
    (tmp_path / "image.eps").rename(tmp_path / "image.png")
    with pytest.raises(UnreadableImageError, match="not an image"):
        ImageFiles([str(tmp_path / "image.png")])[0]


def test_statistics_are_those_of_all_pixels(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(5)]
    write_images(tmp_path, names)
    source = ImageFiles([str(tmp_path / name) for name in names])
    everything = np.concatenate([image.reshape(3, -1) for image in source], axis=1) / 255
    mean, std = sample_statistics(source)
    np.testing.assert_allclose(mean, everything.mean(axis=1))
    np.testing.assert_allclose(std, everything.std(axis=1))
    assert channel_statistics(source) == (mean, std)
    assert sample_statistics(source, sample=2) == channel_statistics([source[0], source[4]])
