from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelproof.data import load_dataset
from labelproof.data.arrays import load_arrays, read_arrays
from labelproof.data.notices import DataWarning

COLOUR = np.random.default_rng(0).integers(0, 256, (6, 8, 10, 3), dtype=np.uint8)
GREY = COLOUR[..., 0]
LABELS = np.array([0, 1, 2, 0, 1, 2])
ROWS = np.arange(12.0).reshape(6, 2)


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "shapes.npz"
    np.savez(path, **arrays)
    return path


def test_images_of_every_layout_and_kind_become_bytes(tmp_path: Path) -> None:
    first = COLOUR.transpose(0, 3, 1, 2)
    for images, wanted in (
        (COLOUR, first),
        (first, first),
        (GREY, GREY[:, np.newaxis]),
        (GREY[..., np.newaxis], GREY[:, np.newaxis]),
    ):
        dataset = load_arrays(save(tmp_path, images=images, labels=LABELS))
        assert (dataset.name, dataset.class_names) == ("shapes", ("0", "1", "2"))
        assert not dataset.clean
        np.testing.assert_array_equal(dataset.train.array, wanted)
        np.testing.assert_allclose(dataset.mean, wanted.mean(axis=(0, 2, 3)) / 255)
        np.testing.assert_allclose(dataset.std, wanted.std(axis=(0, 2, 3)) / 255)
    with pytest.raises(ValueError, match=r"images: expected .* alone"):
        load_arrays(save(tmp_path, images=COLOUR[:, :3], labels=LABELS))
    for images, wanted in (
        (COLOUR / 255, COLOUR),
        (COLOUR.astype(np.int64), COLOUR),
        (COLOUR > 100, (COLOUR > 100) * np.uint8(255)),
    ):
        dataset = load_arrays(save(tmp_path, images=images, labels=LABELS))
        np.testing.assert_array_equal(dataset.train.array, wanted.transpose(0, 3, 1, 2))


def test_splits_are_found_by_name_and_labels_may_lie_beside(tmp_path: Path) -> None:
    for names in (
        ("x_train", "y_train", "x_test", "y_test"),
        ("X_train", "Y_train", "X_test", "Y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
        ("train_features", "train_labels", "test_features", "test_labels"),
    ):
        arrays = dict(zip(names, (COLOUR, LABELS, COLOUR[:2], LABELS[:2]), strict=True))
        dataset = load_arrays(save(tmp_path, **arrays))
        assert (len(dataset.train), len(dataset.test), len(dataset.splits)) == (6, 2, 2)
    np.save(tmp_path / "train_images.npy", COLOUR)
    with pytest.raises(FileNotFoundError, match=r"train_images_labels\.npy"):
        load_arrays(tmp_path / "train_images.npy")
    np.save(tmp_path / "train_images_labels.npy", LABELS)
    assert len(load_arrays(tmp_path / "train_images.npy").train) == 6


def test_labels_are_integers_text_or_one_hot(tmp_path: Path) -> None:
    for labels, names, wanted in (
        (np.array(list("abcabc")), ("a", "b", "c"), LABELS),
        (np.array([b"a", b"b", b"c"] * 2), ("a", "b", "c"), LABELS),
        (np.eye(3)[LABELS], ("0", "1", "2"), LABELS),
        (LABELS.astype(float), ("0", "1", "2"), LABELS),
        (LABELS[:, np.newaxis], ("0", "1", "2"), LABELS),
        (LABELS > 0, ("0", "1"), (LABELS > 0).astype(int)),
    ):
        dataset = load_arrays(save(tmp_path, x=COLOUR, y=labels))
        assert dataset.class_names == names
        np.testing.assert_array_equal(dataset.train.labels, wanted)
    named = load_arrays(save(tmp_path, x=COLOUR, y=LABELS, class_names=["x", "y", "z", "w"]))
    assert named.class_names == ("x", "y", "z", "w")


def test_rows_of_numbers_become_a_table(tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[1, 0] = np.nan
    path = save(tmp_path, x_train=rows, y_train=LABELS % 2, x_test=rows[:2], y_test=[0, 1])
    dataset = load_dataset(path)
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("x0", "x0: missing", "x1")
    assert dataset.test.array.tolist() == [[0, 0, 1], [6, 1, 3]]
    constant = load_arrays(save(tmp_path, features=np.ones((6, 3)), labels=LABELS % 2))
    assert constant.input_shape == (3,)
    like = (dataset.columns, ("1", "0"))
    new = load_arrays(save(tmp_path, x=ROWS[:2], y=[0, 1]), like=like)
    assert new.train.labels.tolist() == [1, 0]
    with pytest.raises(ValueError, match="rows of 2 numbers"):
        load_arrays(save(tmp_path, x=np.ones((2, 3)), y=[0, 1]), like=like)
    rows[2, 1] = np.inf
    with pytest.raises(ValueError, match="x1"):
        load_arrays(save(tmp_path, x=rows, y=LABELS))
    with pytest.warns(DataWarning, match="x1"):
        load_arrays(save(tmp_path, x=rows, y=LABELS), on_error="skip")


def test_what_cannot_be_a_dataset_is_refused(tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"images": COLOUR}, "one of labels, got images"),
        ({"photos": COLOUR, "labels": LABELS}, "one of labels, got labels"),
        ({"a": COLOUR}, "images and labels"),
        ({"x": COLOUR, "images": COLOUR, "y": LABELS}, "got x and images and y"),
        ({"x_train": COLOUR, "y_train": LABELS, "x_test": COLOUR}, "one of labels, got x_test"),
        ({"x_test": COLOUR, "y_test": LABELS}, "x_train"),
        ({"x": COLOUR, "y": LABELS[:5]}, "each of 6 examples"),
        ({"x": COLOUR, "y": LABELS - 1, "class_names": ["a", "b"]}, "got -1"),
        ({"x": COLOUR, "y": LABELS / 4}, "0.25 for sample 1"),
        ({"x": COLOUR, "y": np.ones((6, 3))}, r"of shape \(6, 3\)"),
        *(({"x": COLOUR, "y": ["a", "b", word] * 2}, "sample 2") for word in ("?", "nan", "")),
        ({"x": COLOUR, "y": LABELS, "class_names": ["a"]}, "got 1, 2"),
        ({"x": COLOUR - 128.5, "y": LABELS}, "from -128.5"),
        ({"x": COLOUR.astype(np.float32), "y": LABELS}, "to 255; scale"),
        ({"x": COLOUR * np.nan, "y": LABELS}, "nan"),
        ({"x": np.array([[["a"]]] * 6), "y": LABELS}, "numbers"),
        ({"x": np.zeros((6, 2, 2, 2, 2), np.uint8), "y": LABELS}, r"\(N, H, W\)"),
        ({"x": np.array([["a", "b"]] * 6), "y": LABELS}, "numbers of shape"),
        ({"x_train": ROWS, "y_train": LABELS, "x_val": ROWS[:, :1], "y_val": LABELS}, "validation"),
    )
    for arrays, message in cases:
        with pytest.raises(ValueError, match=message):
            load_arrays(save(tmp_path, **arrays))


def test_damaged_and_hostile_files_are_refused(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "objects.npz", x=objects, allow_pickle=True)
    whole = save(tmp_path, x=COLOUR, y=LABELS).read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.npy").write_text("not an array")
    header = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1" + b"0" * 40
    )
    (tmp_path / "huge.npy").write_bytes(header + b",), }" + b" " * 40 + b"\n")
    for name in ("objects.npy", "objects.npz", "half.npz", "text.npy", "huge.npy"):
        with pytest.raises(ValueError, match=name) as caught:
            read_arrays(tmp_path / name)
        assert "pickle" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="gone"):
        read_arrays(tmp_path / "gone.npz")
