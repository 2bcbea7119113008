import io
import pickle
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from made_images import make_image, pixels, write_images
from PIL import Image

from labelproof.data.encoded import StoredImage, UnreadableImageError, decode_image
from labelproof.data.examination import channel_statistics, examine_images, sample_statistics
from labelproof.data.folder import load_folder
from labelproof.data.images import ImageFiles
from labelproof.data.notices import DataWarning


def encoded(image: Image.Image, kind: str, **options: object) -> StoredImage:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return StoredImage("stored", stream.getvalue())


@pytest.mark.parametrize("suffix", ["bmp", "png", "ppm", "tif"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_lossless_files_come_back_exactly(suffix: str, mode: str, tmp_path: Path) -> None:
    image = make_image(1, mode=mode)
    path = tmp_path / f"image.{suffix}"
    image.save(path)
    source = ImageFiles([str(path)], mode=mode)  # type: ignore[arg-type]
    np.testing.assert_array_equal(source[0], pixels(image))
    assert source[0].dtype == np.uint8
    torch.from_numpy(source[0])  # writable, or torch warns


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "GIF"])
def test_lossy_files_come_back_nearly(kind: str) -> None:
    image = make_image(2, size=(64, 48))
    array = decode_image(encoded(image, kind), mode="RGB").astype(int)
    assert array.shape == (3, 48, 64)
    assert np.abs(array - pixels(image)).mean() < 12


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_cameras_orientation_is_applied(orientation: int) -> None:
    upright = make_image(3)
    # How a camera that is held so stores the picture: the inverse of what a viewer does.
    stored = {
        1: upright,
        2: upright.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        3: upright.transpose(Image.Transpose.ROTATE_180),
        4: upright.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        5: upright.transpose(Image.Transpose.TRANSPOSE),
        6: upright.transpose(Image.Transpose.ROTATE_90),
        7: upright.transpose(Image.Transpose.TRANSVERSE),
        8: upright.transpose(Image.Transpose.ROTATE_270),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    array = decode_image(encoded(stored, "PNG", exif=exif), mode="RGB")
    np.testing.assert_array_equal(array, pixels(upright))


def test_an_image_with_a_broken_orientation_is_taken_as_it_lies() -> None:
    image = make_image(4)
    array = decode_image(encoded(image, "PNG", exif=b"Exif\0\0nonsense"), mode="RGB")
    np.testing.assert_array_equal(array, pixels(image))


def test_transparent_pixels_are_white() -> None:
    image = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    image.putpixel((1, 0), (0, 0, 0, 0))
    array = decode_image(encoded(image, "PNG"), mode="RGB")
    np.testing.assert_array_equal(array[:, 0], [[255, 255], [0, 255], [0, 255]])
    palette = image.convert("P")
    palette.info["transparency"] = palette.getpixel((1, 0))
    array = decode_image(encoded(palette, "PNG"), mode="L")
    assert array[0, 0, 1] == 255


def test_sixteen_bits_are_scaled_and_not_cut() -> None:
    levels = np.array([[0, 256, 32768, 65535]], np.uint16)
    array = decode_image(encoded(Image.fromarray(levels), "PNG"), mode="L")
    np.testing.assert_array_equal(array[0], [[0, 1, 128, 255]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[0.5]], np.float32), "floating-point numbers of unknown range"),
        (np.array([[70000]], np.int32), "32 bits of unknown range"),
    ],
)
def test_pixels_of_unknown_range_are_refused(values: np.ndarray, message: str) -> None:
    with pytest.raises(UnreadableImageError, match=message):
        decode_image(encoded(Image.fromarray(values), "TIFF"), mode="L")


def write_deep(folder: Path, values: np.ndarray, suffix: str = "png") -> Path:
    """Two classes of two 16-bit images, from the values in another order each."""
    generator = np.random.default_rng(0)
    for name in ("a/1", "a/2", "b/1", "b/2"):
        path = folder / f"{name}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(generator.permutation(values.ravel()).reshape(values.shape)).save(path)
    return folder


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize(
    ("low", "high", "kept"), [(0, 250, "1 of the 256"), (0, 4095, "16 of"), (32768, 33700, "4 of")]
)
def test_sixteen_bits_of_which_little_is_left_are_warned_of_once(
    low: int, high: int, kept: str, suffix: str, tmp_path: Path
) -> None:
    values = np.linspace(low, high, 32 * 32).astype(np.uint16).reshape(32, 32)
    with pytest.warns(DataWarning) as caught:
        load_folder(write_deep(tmp_path, values, suffix))
    (message,) = [str(warning.message) for warning in caught]
    assert f"16-bit images with {kept}" in message
    assert f"1.{suffix}" in message
    assert f"from {low:,} to {high:,}" in message
    assert "save them as 8 bit" in message


def test_a_few_hot_pixels_do_not_hide_that_the_rest_is_black(tmp_path: Path) -> None:
    values = np.linspace(0, 250, 64 * 64).astype(np.uint16).reshape(64, 64)
    values[0, 0] = 65535
    with pytest.warns(DataWarning, match="16-bit images with 1 of"):
        load_folder(write_deep(tmp_path, values))


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0, 65535, 1024).astype(np.uint16).reshape(32, 32),
        np.linspace(0, 16383, 1024).astype(np.uint16).reshape(32, 32),
        (np.arange(1024) % 2 * 65535).astype(np.uint16).reshape(32, 32),
        (np.arange(1024) % 8 * 256).astype(np.uint16).reshape(32, 32),
    ],
)
def test_sixteen_bits_that_lose_little_are_not_warned_of(
    values: np.ndarray, tmp_path: Path
) -> None:
    load_folder(write_deep(tmp_path, values))


def test_colours_of_sixteen_bits_are_looked_at_too() -> None:
    # Pillow cannot write them: a PNG of one line, made by hand.
    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + kind + content + check

    def portable(high: int) -> StoredImage:
        line = np.linspace(0, high, 3 * 64).astype(">u2").tobytes()
        header = (64).to_bytes(4, "big") + (1).to_bytes(4, "big") + bytes([16, 2, 0, 0, 0])
        content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
        content += chunk(b"IDAT", zlib.compress(b"\0" + line)) + chunk(b"IEND", b"")
        return StoredImage("dim.png", content)

    with pytest.warns(DataWarning, match=r"with 4 of .* such as dim\.png: .* from 0 to 1,023"):
        sample_statistics(ImageFiles([portable(1023)]))
    sample_statistics(ImageFiles([portable(65535)]))


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "WEBP", "PNG"])
@pytest.mark.parametrize("full", [False, True])
def test_files_with_several_pages_are_counted_and_one_is_named(kind: str, full: bool) -> None:
    pages = [make_image(number) for number in range(3)]
    single = encoded(pages[0], kind)
    several = encoded(pages[0], kind, save_all=True, append_images=pages[1:])
    several = StoredImage("stack", several.content)
    with pytest.warns(DataWarning) as caught:
        found = examine_images([single, several, single, several], full=full)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("2 images have more than one page, of 4")
    assert "such as stack: only the first page is taken" in message
    assert found.readable == [0, 1, 2, 3]
    examine_images([single, single], full=full)


def test_a_source_knows_whether_its_images_have_one_size(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    wide, high = encoded(make_image(1, size=(24, 16)), "PNG"), make_image(2, size=(16, 24))
    assert ImageFiles([wide, wide]).one_size
    assert not ImageFiles([wide, encoded(high, "PNG")]).one_size
    # A camera on its side stores what is wide as high.
    assert ImageFiles([wide, encoded(high, "PNG", exif=exif)]).one_size
    assert not ImageFiles([wide, StoredImage("broken", b"")]).one_size
    assert not ImageFiles([]).one_size


@pytest.mark.parametrize("size", [(400, 300), (300, 400), (31, 17), (20, 20)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_the_short_side_is_exact_whatever_the_size(size: tuple[int, int], kind: str) -> None:
    image = make_image(5, size=size)
    options = {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    array = decode_image(encoded(image, kind, **options), mode="RGB", short_side=20)
    width, height = (round(side * 20 / min(size)) for side in size)
    assert array.shape == (3, height, width)
    wanted = pixels(image.resize((width, height), Image.Resampling.BILINEAR)).astype(int)
    # Decoding at a fraction of the size is another filter, and must not be another picture.
    assert np.abs(array - wanted).mean() < 4


def test_an_upright_photo_of_a_camera_on_its_side_is_resized_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = encoded(make_image(5, size=(400, 300)), "JPEG", exif=exif)
    assert decode_image(file, mode="RGB", short_side=20).shape == (3, 27, 20)


def test_a_small_image_is_left_alone_where_nothing_is_enlarged() -> None:
    file = encoded(make_image(6, size=(12, 9)), "PNG")
    assert decode_image(file, mode="RGB", short_side=20, enlarge=False).shape == (3, 9, 12)


def test_a_source_counts_from_both_ends_and_then_stops(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    source = ImageFiles([str(tmp_path / "a.png"), str(tmp_path / "b.png")])
    assert len(list(source)) == 2
    np.testing.assert_array_equal(source[-1], source[1])
    np.testing.assert_array_equal(source[np.int64(0)], source[-2])  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="expected less than 2, got 2"):
        source[2]


def test_a_source_can_be_sent_to_another_process(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png"])
    source = ImageFiles([str(tmp_path / "a.png")], short_side=8)
    copy = pickle.loads(pickle.dumps(source))  # noqa: S301 (made in the line itself)
    np.testing.assert_array_equal(copy[0], source[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "CMYK"}, "mode: expected 'RGB' or 'L', got 'CMYK'"),
        ({"short_side": 0}, "short_side: expected at least 1 pixel, got 0"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImageFiles([], **options)


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
        "empty.jpg": "the file is empty",
        "text.png": "not an image of a kind that is read here",
        "cut.jpg": "truncated",
        "broken.png": "",
        "folder.png": "it is a folder",
        "link.png": "there is no such file",
        "circle.png": "symbolic links",
    }


def test_a_file_that_cannot_be_read_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    for name, reason in write_bad_files(tmp_path).items():
        with pytest.raises(UnreadableImageError, match=rf"image 0: .*{name}: .*{reason}"):
            ImageFiles([str(tmp_path / name)])[0]
    with pytest.raises(UnreadableImageError, match=r"a\\xe9.png: there is no such file"):
        ImageFiles([str(tmp_path / "a\udce9.png")])[0]
    with pytest.raises(UnreadableImageError, match="null"):
        ImageFiles(["a\0.png"])[0]


def test_every_bad_file_among_good_ones_is_found_and_named(tmp_path: Path) -> None:
    bad = write_bad_files(tmp_path)
    write_images(tmp_path, ["a.png", "z.jpg"])
    names = ["a.png", *bad, "z.jpg"]
    files = [str(tmp_path / name) for name in names]
    full = examine_images(files, full=True)
    assert full.readable == [0, len(names) - 1]
    assert [Path(reason.split(":")[0]).name for reason in full.unreadable] == list(bad)
    quick = examine_images(files, full=False)
    # Headers alone do not tell a file that is cut off.
    found = {names[index] for index in set(quick.readable) - set(full.readable)}
    assert "cut.jpg" in found
    assert found <= {"cut.jpg", "broken.png"}


def test_more_files_than_are_looked_at_in_a_round(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png"])
    files = [str(tmp_path / "a.png")] * 600
    assert examine_images(files, full=False).readable == list(range(600))


@pytest.mark.parametrize(
    ("modes", "found"), [(("L", "LA", "1"), "L"), (("L", "RGB"), "RGB"), ((), "RGB")]
)
def test_all_images_get_one_mode(modes: tuple[str, ...], found: str) -> None:
    files = [encoded(make_image(9, mode=mode), "PNG") for mode in modes]
    assert examine_images(files, full=False).mode == found


@pytest.mark.parametrize("factor", [1.5, 4])
def test_a_decompression_bomb_is_an_error(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", int(24 * 16 / factor))
    file = encoded(make_image(10), "PNG")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with pytest.raises(UnreadableImageError, match="pixels"):
            decode_image(file, mode="RGB", short_side=2)
        assert examine_images([file], full=False).unreadable
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert decode_image(file, mode="RGB").shape == (3, 16, 24)


def test_formats_that_run_other_programs_are_not_opened(tmp_path: Path) -> None:
    make_image(11).save(tmp_path / "image.eps")
    (tmp_path / "image.eps").rename(tmp_path / "image.png")
    with pytest.raises(UnreadableImageError, match="not an image of a kind that is read here"):
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


def test_images_of_one_colour_can_still_be_divided_by_their_deviation() -> None:
    assert channel_statistics([np.full((1, 4, 4), 7, np.uint8)])[1] == (1 / 255,)
