import os
import sys
from pathlib import Path

import numpy as np
import pytest
from made_images import write_images

from labelproof.data import Dataset, Split, load_dataset
from labelproof.data.dataset import order_classes
from labelproof.data.images import sample_names
from labelproof.data.notices import count, few, quoted, readable
from labelproof.data.table import dataset_from_rows

ROWS = np.array([[1, 7, 0.1], [3, 7, 0.1], [5, 7, 0.1]], np.float32)
LABELS = np.array([0, 1, 1])


def test_rows_are_finite_and_standardised_by_feature() -> None:
    for rows, error, message in (
        (ROWS.astype(float), TypeError, r"images: expected rows of float32, got float64"),
        (ROWS.astype(np.uint8), TypeError, "expected rows of float32, got uint8"),
        (np.where(ROWS == 5, np.float32("nan"), ROWS), ValueError, "finite"),
        (np.where(ROWS == 3, np.float32("inf"), ROWS), ValueError, "finite"),
        (ROWS[:2], ValueError, "labels: expected one for each of 2 examples, got 3"),
    ):
        with pytest.raises(error, match=message):
            Split(rows, LABELS)
    dataset = dataset_from_rows(
        "table", {"train": Split(ROWS, LABELS), "test": Split(ROWS * 9, LABELS)}, ["a", "b"], None
    )
    assert dataset.tabular
    assert dataset.input_shape == (3,)
    np.testing.assert_allclose(dataset.mean, [3, 7, 0.1], rtol=1e-6)
    # A feature that never changes is only moved: no rounding error is blown up.
    np.testing.assert_allclose(dataset.std, [float(np.std([1, 3, 5])), 1, 1])


def test_what_is_printed_is_short() -> None:
    large = np.zeros((5000, 40), np.float32)
    labels = np.zeros(5000, np.int64)
    names = tuple(str(number) for number in range(100))
    dataset = Dataset("big", {"train": Split(large, labels)}, names, (0.0,), (1.0,))
    assert repr(dataset.train) == "Split(5,000 rows of 40 features)"
    assert repr(dataset) == (
        "Dataset('big', train: 5,000 rows of 40 features, 100 classes: 0, 1, 2 and 97 more)"
    )
    images = Split(np.zeros((2, 3, 4, 5), np.uint8), labels[:2])
    assert repr(images) == "Split(2 images of 3x4x5)"
    split = Split([np.zeros((1, 2, 2), np.uint8)] * 3, LABELS)
    dataset = Dataset("lazy", {"train": split, "test": split}, ("a", "b"), (0.5,), (0.2,))
    assert not dataset.tabular
    wanted = "train: 3 images, decoded on access, test: 3, 2 classes: a, b"
    assert repr(dataset) == f"Dataset('lazy', {wanted})"
    assert few(["a.jpg", "b.jpg", "c.jpg", "d.jpg", "e.jpg"]) == "a.jpg, b.jpg, c.jpg and 2 more"
    assert (count(1, "image"), count(1200, "image")) == ("1 image", "1,200 images")
    assert quoted("customer complained about the price", length=20) == "'customer complained…'"
    assert readable(os.fsdecode(b"caf\xe9.jpg")) == r"caf\xe9.jpg"
    assert order_classes(["dog", "Cat", "dog"]) == ("Cat", "dog")
    assert order_classes(["10", "9", "010", "2"]) == ("2", "9", "010", "10")


FILES = ["cat/1.png", "cat/deep/er/2.png", "dog/3.png", "dog/4.png"]


def test_images_are_called_by_their_path_in_a_folder_or_beside_a_table(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    odd = [os.fsdecode(b"cat/caf\xe9.png")] if sys.platform == "linux" else []
    write_images(photos, FILES + odd)
    for place in (photos, f"{photos}/"):
        assert sorted(sample_names(load_dataset(photos).train, place)) == sorted(FILES + odd)
    rows = [f"photos/{name},{name[:3]}" for name in reversed(FILES)]
    (tmp_path / "table.csv").write_text("path,label\n" + "\n".join(rows) + "\n")
    found = sample_names(load_dataset(tmp_path / "table.csv").train, tmp_path / "table.csv")
    assert found == [f"photos/{name}" for name in reversed(FILES)]
