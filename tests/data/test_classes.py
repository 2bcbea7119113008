import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from made_images import write_images

from labelproof.data import load_dataset
from labelproof.data.dataset import order_classes
from labelproof.data.notices import UnusableSamplesError, count, few, quoted, readable


def test_words_of_messages_are_short_and_printable() -> None:
    assert few(["a.jpg", "b.jpg", "c.jpg", "d.jpg", "e.jpg"]) == "a.jpg, b.jpg, c.jpg and 2 more"
    assert (count(1, "image"), count(1200, "image")) == ("1 image", "1,200 images")
    assert quoted("customer complained about the price", length=20) == "'customer complained…'"
    assert readable(os.fsdecode(b"caf\xe9.jpg")) == r"caf\xe9.jpg"
    assert order_classes(["dog", "Cat", "dog"]) == ("Cat", "dog")
    assert order_classes(["10", "9", "010", "2"]) == ("2", "9", "010", "10")
    error = pickle.loads(pickle.dumps(UnusableSamplesError("t.csv: bad", "mend it")))  # noqa: S301
    assert (error.reason, error.advice) == ("t.csv: bad", "mend it")
    assert str(error) == "t.csv: bad; mend it"


def rows_without_a_label(folder: Path) -> Path:
    (folder / "t.csv").write_text("size,label\n1,a\n2,b\n3,\n4,a\n5,b\n")
    return folder / "t.csv"


def cells_that_are_no_numbers(folder: Path) -> Path:
    rows = "\n".join(f"{number},{'ab'[number % 2]}" for number in range(30))
    (folder / "t.csv").write_text(f"size,label\n{rows}\nlarge,a\n")
    return folder / "t.csv"


def images_that_are_broken(folder: Path) -> Path:
    write_images(folder / "photos", [f"{label}/{number}.png" for label in "ab" for number in "012"])
    (folder / "photos" / "a" / "0.png").write_bytes(b"oops")
    return folder / "photos"


def listed_images_that_are_missing(folder: Path) -> Path:
    images_that_are_broken(folder)
    lines = [f"photos/{label}/{number}.png,{label}" for label in "ab" for number in "123"]
    (folder / "list.csv").write_text("\n".join(["path,label", *lines]))
    return folder / "list.csv"


@pytest.mark.parametrize(
    "make",
    [
        rows_without_a_label,
        cells_that_are_no_numbers,
        images_that_are_broken,
        listed_images_that_are_missing,
    ],
)
def test_the_advice_is_apart_from_the_reason(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(UnusableSamplesError) as caught:
        load_dataset(path, on_error="raise")
    assert str(path) in caught.value.reason
    assert "skip" not in caught.value.reason
    assert "on_error='skip'" in caught.value.advice
