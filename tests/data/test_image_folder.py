from pathlib import Path

import numpy as np
import pytest
from made_images import write_images
from notices import told

from labelproof.data.image_folder import load_folder
from labelproof.data.notices import DataWarning

PLAIN = ["cat/1.png", "cat/2.png", "cat/deep/er/3.png", "dog/1.jpg", "dog/2.JPEG"]


def test_a_folder_is_a_class(tmp_path: Path) -> None:
    write_images(tmp_path / "pets", PLAIN)
    dataset = load_folder(tmp_path / "pets", short_side=8)
    assert (dataset.name, dataset.class_names, dataset.clean) == ("pets", ("cat", "dog"), False)
    assert list(dataset.splits) == ["train"]
    np.testing.assert_array_equal(dataset.train.labels, [0, 0, 0, 1, 1])
    assert dataset.train.labels.dtype == np.int64
    assert dataset.image_shape == (3, 8, 12)
    assert len(dataset.mean) == len(dataset.std) == 3


def test_splits_at_the_top(tmp_path: Path) -> None:
    for train, validation, test in (("train", "val", "test"), ("Training", "VALID", "testing")):
        root = tmp_path / train
        write_images(root, [f"{train}/{name}.png" for name in ("a/1", "a/2", "b/1")])
        others = [f"{validation}/b/1.png", f"{test}/a/1.png", f"{test}/b/2.png", "old/1.png"]
        write_images(root, others, size=(20, 20))
        dataset, messages = told(load_folder, root)
        assert any("left out, not one of train, val and test: old" in text for text in messages)
        assert list(dataset.splits) == ["train", "validation", "test"]
        labels = [split.labels.tolist() for split in dataset.splits.values()]
        assert labels == [[0, 0, 1], [1], [0, 1]]
    write_images(tmp_path / "c", ["bus/1.png", "train/1.png", "train/2.png", "tram/1.png"])
    assert load_folder(tmp_path / "c").class_names == ("bus", "train", "tram")


REFUSED: list[tuple[list[str], str]] = [
    (["val/a/1.png", "test/a/1.png"], "expected class folders in train .*, got test, val"),
    (["train/1.png", "test/1.png"], "expected class folders .* got test, train"),
    (["train/a/1.png", "val/a/1.png", "valid/a/2.png"], "got train, val, valid"),
    (["train/a/.1.png", "test/a/1.png"], "the folder train holds no images"),
    (["1.png", "2.png"], "found none: 2 images in no class folder"),
    (["a/x.txt", "b/y.txt", "b/z"], "found none: only .*x.txt"),
    ([], "found none$"),
]


def test_what_cannot_be_a_dataset_is_refused(tmp_path: Path) -> None:
    for number, (names, message) in enumerate(REFUSED):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        write_images(folder, [name for name in names if name.endswith(".png")])
        with pytest.raises(ValueError, match=message):
            load_folder(folder)
    with pytest.raises(FileNotFoundError, match="gone"):
        load_folder(tmp_path / "gone")
    write_images(tmp_path / "pets", PLAIN)
    with pytest.raises(ValueError, match=r"on_error: expected .* got 'ignore'"):
        load_folder(tmp_path / "pets", on_error="ignore")  # type: ignore[arg-type]


def test_everything_beside_the_images_is_counted(tmp_path: Path) -> None:
    write_images(tmp_path, [*PLAIN, "loose.png"])
    for name in (".DS_Store", "cat/.thumbs.png", "cat/notes.txt", "dog/IMG_1.HEIC", "readme"):
        (tmp_path / name).touch()
    (tmp_path / ".git").mkdir()
    dataset, messages = told(load_folder, tmp_path)
    assert (len(dataset.train), len(messages)) == (5, 2)
    assert "3 files left out" in messages[0]
    for name in ("IMG_1.HEIC", "notes.txt", "readme"):
        assert name in messages[0]
    assert "1 image left out, in no class folder" in messages[1]


def test_classes_go_by_number_and_files_by_path(tmp_path: Path) -> None:
    write_images(tmp_path, ["10/b.png", "10/a-b.png", "10/a/b.png", "9/B.png", "9/a.png"])
    dataset = load_folder(tmp_path)
    assert dataset.class_names == ("9", "10")
    files = [str(Path(file).relative_to(tmp_path)) for file in dataset.train.images.files]  # type: ignore[union-attr]
    assert files == ["9/B.png", "9/a.png", "10/a/b.png", "10/a-b.png", "10/b.png"]
    write_images(tmp_path / "pets", ["Cat/1.png", "cat/1.png", "cat/2.png"])
    _, messages = told(load_folder, tmp_path / "pets")
    assert "the classes 'Cat' and 'cat' differ only in case or spaces" in messages[0]


def test_a_class_may_be_a_link_and_nothing_goes_in_circles(tmp_path: Path) -> None:
    write_images(tmp_path / "data", PLAIN)
    write_images(tmp_path / "more", ["4.png"], size=(30, 30))
    (tmp_path / "data" / "owl").symlink_to(tmp_path / "more")
    (tmp_path / "data" / "cat" / "up").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "self").symlink_to(tmp_path / "data" / "self")
    dataset, messages = told(load_folder, tmp_path / "data")
    assert any("1 linked folder within a class not followed: " in text for text in messages)
    assert len(dataset.train) == 6
    assert dataset.class_names == ("cat", "dog", "owl")


def test_bad_images_are_fatal_or_left_out_by_choice(tmp_path: Path) -> None:
    write_images(tmp_path, PLAIN)
    (tmp_path / "cat" / "empty.png").touch()
    whole = (tmp_path / "dog" / "1.jpg").read_bytes()
    (tmp_path / "dog" / "cut.jpg").write_bytes(whole[:-100])
    with pytest.raises(
        ValueError, match=r"1 of 7 images cannot be read: .*empty\.png: the file is empty; fix"
    ):
        load_folder(tmp_path)
    dataset, messages = told(load_folder, tmp_path, on_error="skip")
    assert dataset.train.labels.tolist() == [0, 0, 0, 1, 1]
    assert "2 of 7 images cannot be read: " in messages[0]
    assert "empty.png" in messages[0]
    assert "cut.jpg" in messages[0]
    for image in dataset.train.images:  # type: ignore[union-attr]
        assert image.shape == (3, 16, 24)
    for path in tmp_path.rglob("*.*"):
        path.write_bytes(b"")
    with (
        pytest.warns(DataWarning, match="7 of 7 images"),
        pytest.raises(ValueError, match="none of the training images can be read"),
    ):
        load_folder(tmp_path, on_error="skip")


def test_the_same_image_twice_is_pointed_out(tmp_path: Path) -> None:
    write_images(tmp_path, [f"train/{name}" for name in ("a/1.png", "a/2.png", "b/1.png")])
    copies = {"train/a/3.png": "a/1", "train/b/2.png": "a/2", "test/b/1.png": "b/1"}
    for copy, name in copies.items():
        path = tmp_path / copy
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((tmp_path / "train" / f"{name}.png").read_bytes())
    dataset, messages = told(load_folder, tmp_path)
    assert len(dataset.train) == 5
    conflict, shared, again = messages
    assert "1 image found with more than one label, such as" in conflict
    assert "a/2.png and" in conflict
    assert "b/2.png; at most one of the labels is right" in conflict
    assert "1 image found in more than one split" in shared
    assert "1 image found more than once in the same class" in again
