from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_images import write_images

from labelproof.data import Dataset, Split, load_dataset, load_digits
from labelproof.data import images as decoding
from labelproof.data.images import ImageFiles, StoredImage
from labelproof.training.fingerprint import fingerprint

NAMES = [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(4)]


def of_files(*names: str | StoredImage) -> str:
    files = ImageFiles(list(names))  # pyright: ignore[reportArgumentType]
    split = Split(files, np.arange(len(names)) % 2)
    return fingerprint(Dataset("photos", {"train": split}, ("cat", "dog"), (0.5,), (0.5,)))


def relabelled(dataset: Dataset) -> Dataset:
    labels = dataset.train.labels.copy()
    labels[7] = (labels[7] + 1) % dataset.num_classes
    return replace(
        dataset, splits={**dataset.splits, "train": replace(dataset.train, labels=labels)}
    )


def repainted(dataset: Dataset) -> Dataset:
    images = dataset.train.array.copy()
    images[3] = 255 - images[3]
    return replace(
        dataset, splits={**dataset.splits, "train": replace(dataset.train, images=images)}
    )


def shortened(dataset: Dataset) -> Dataset:
    test = Split(dataset.test.array[:-1], dataset.test.labels[:-1])
    return replace(dataset, splits={**dataset.splits, "test": test})


@pytest.mark.parametrize("change", [relabelled, repainted, shortened])
def test_labels_pixels_and_numbers_are_in_it(change: Callable[[Dataset], Dataset]) -> None:
    digits = load_digits()
    assert fingerprint(change(digits)) != fingerprint(digits)


def test_the_name_is_not_in_it() -> None:
    digits = load_digits()
    assert fingerprint(replace(digits, name="numbers")) == fingerprint(digits)


def test_labels_that_are_given_are_in_it() -> None:
    digits = load_digits()
    given = digits.train.labels
    found = {fingerprint(digits), fingerprint(digits, given=given)}
    found.add(fingerprint(digits, given=relabelled(digits).train.labels))
    assert len(found) == 3


def test_files_are_the_same_wherever_their_folder_is() -> None:
    there = of_files("/there/photos/cat/1.png", "/there/photos/dog/2.png")
    assert there == of_files("photos/cat/1.png", "photos/dog/2.png")
    assert there == of_files("cat/1.png", "dog/2.png")
    assert there != of_files("cat/1.png", "dog/3.png")
    assert there != of_files("dog/2.png", "cat/1.png")


def test_letters_that_names_begin_with_are_kept() -> None:
    assert of_files("photos/cat1.png", "photos/cat2.png") != of_files(
        "photos/1.png", "photos/2.png"
    )
    assert of_files("photos/1.png") == of_files("elsewhere/1.png") != of_files("photos/2.png")


def test_stored_images_are_told_by_their_names() -> None:
    one, two = (StoredImage(name, b"") for name in ("row 1", "row 2"))
    assert of_files(one, two) == of_files(one, two) != of_files(two, one)


def test_images_whose_names_are_known_are_not_read() -> None:
    class Costly:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int, /) -> StoredImage:
            raise AssertionError("read")

        def name_of(self, index: int) -> str:
            return f"row {index}"

    split = Split(ImageFiles(Costly()), np.array([0, 1]))
    dataset = Dataset("rows", {"train": split}, ("cat", "dog"), (0.5,), (0.5,))
    assert fingerprint(dataset) == of_files(*(StoredImage(f"row {i}", b"") for i in range(2)))


def test_no_file_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_images(tmp_path / "photos", NAMES)
    photos = load_dataset(tmp_path / "photos")

    def decode(*_: object, **__: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(decoding, "decode_image", decode)
    before = fingerprint(photos)
    (tmp_path / "photos").rename(tmp_path / "moved")
    monkeypatch.undo()
    assert fingerprint(load_dataset(tmp_path / "moved")) == before
