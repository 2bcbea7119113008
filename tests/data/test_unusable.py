from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from PIL import Image

from labelproof.data import load_dataset
from labelproof.data.unusable import UnusableSamplesError


def test_it_survives_a_pickle_with_both_parts() -> None:
    error = pickle.loads(pickle.dumps(UnusableSamplesError("t.csv: bad", "mend it")))  # noqa: S301
    assert (error.reason, error.advice, str(error)) == (
        *("t.csv: bad", "mend it"),
        "t.csv: bad; mend it",
    )


def rows_without_a_label(folder: Path) -> Path:
    (folder / "t.csv").write_text("size,label\n1,a\n2,b\n3,\n4,a\n5,b\n")
    return folder / "t.csv"


def cells_that_are_no_numbers(folder: Path) -> Path:
    rows = "\n".join(f"{number},{'ab'[number % 2]}" for number in range(30))
    (folder / "t.csv").write_text(f"size,label\n{rows}\nlarge,a\n")
    return folder / "t.csv"


def images_that_are_broken(folder: Path) -> Path:
    for label in ("a", "b"):
        (folder / "photos" / label).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (8, 8), (number * 40, ord(label), 9)).save(
                folder / "photos" / label / f"{number}.png"
            )
    (folder / "photos" / "a" / "0.png").write_bytes(b"oops")
    return folder / "photos"


def listed_images_that_lack(folder: Path) -> Path:
    images_that_are_broken(folder)
    lines = [f"photos/{label}/{number}.png,{label}" for label in "ab" for number in (1, 2, 3)]
    (folder / "list.csv").write_text("\n".join(["path,label", *lines]))
    return folder / "list.csv"


@pytest.mark.parametrize(
    "make",
    [
        rows_without_a_label,
        cells_that_are_no_numbers,
        images_that_are_broken,
        listed_images_that_lack,
    ],
)
def test_the_advice_is_apart_from_the_reason(make: object, tmp_path: Path) -> None:
    path = make(tmp_path)  # pyright: ignore[reportCallIssue]
    with pytest.raises(UnusableSamplesError) as caught:
        load_dataset(path, on_error="raise")
    assert str(path) in caught.value.reason
    assert "skip" not in caught.value.reason
    assert "on_error='skip'" in caught.value.advice


def test_labels_alone_need_no_features(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label\nthis,a\nthat,b\nthose,a\nthese,b\n")
    dataset = load_dataset(tmp_path / "t.csv", features=False)
    assert dataset.class_names == ("a", "b")
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]
    assert dataset.input_shape == (0,)
    assert list(dataset.train.places or []) == ["line 2", "line 3", "line 4", "line 5"]
