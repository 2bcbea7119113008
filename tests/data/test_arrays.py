import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelproof.data import load_dataset
from labelproof.data.arrays import load_arrays
from labelproof.data.columns import Columns
from labelproof.data.notices import DataWarning

GENERATOR = np.random.default_rng(0)
COLOUR = GENERATOR.integers(0, 256, (6, 8, 10, 3), dtype=np.uint8)
GREY = COLOUR[..., 0]
LABELS = np.array([0, 1, 2, 0, 1, 2])


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "shapes.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("images", "shape"),
    [
        (COLOUR, (3, 8, 10)),
        (COLOUR.transpose(0, 3, 1, 2), (3, 8, 10)),
        (GREY, (1, 8, 10)),
        (GREY[..., np.newaxis], (1, 8, 10)),
        (GREY[:, np.newaxis], (1, 8, 10)),
    ],
)
def test_the_layout_is_seen_from_the_shape(
    images: np.ndarray, shape: tuple[int, int, int], tmp_path: Path
) -> None:
    dataset = load_arrays(save(tmp_path, images=images, labels=LABELS))
    assert dataset.name == "shapes"
    assert dataset.image_shape == shape
    assert dataset.class_names == ("0", "1", "2")
    assert not dataset.clean
    wanted = COLOUR.transpose(0, 3, 1, 2) if shape[0] == 3 else GREY[:, np.newaxis]
    np.testing.assert_array_equal(dataset.train.array, wanted)
    np.testing.assert_allclose(dataset.mean, wanted.mean(axis=(0, 2, 3)) / 255)
    np.testing.assert_allclose(dataset.std, wanted.std(axis=(0, 2, 3)) / 255)


@pytest.mark.parametrize(
    "names",
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("X_train", "Y_train", "X_test", "Y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
    ],
)
def test_splits_are_found_by_name(names: tuple[str, ...], tmp_path: Path) -> None:
    arrays = dict(zip(names, (COLOUR, LABELS, COLOUR[:2], LABELS[:2]), strict=True))
    dataset = load_arrays(save(tmp_path, **arrays, x_val=COLOUR[:3], y_val=LABELS[:3, np.newaxis]))
    assert {name: len(split) for name, split in dataset.splits.items()} == {
        "train": 6,
        "validation": 3,
        "test": 2,
    }


@pytest.mark.parametrize(
    "names",
    [
        *[("X", "y"), ("data", "targets"), ("images", "label")],
        *[("embeddings", "labels"), ("Features", "y")],
    ],
)
def test_a_single_pair_is_there_to_train_on(names: tuple[str, str], tmp_path: Path) -> None:
    arrays = dict(zip(names, (COLOUR, LABELS), strict=True))
    assert list(load_arrays(save(tmp_path, **arrays)).splits) == ["train"]


def test_embeddings_have_splits_and_give_way_to_images(tmp_path: Path) -> None:
    rows = GREY[:, 0] / 7
    names = ("train_embeddings", "train_labels", "test_embeddings", "test_labels")
    arrays = dict(zip(names, (rows, LABELS, rows[:2], LABELS[:2]), strict=True))
    assert list(load_arrays(save(tmp_path, **arrays)).splits) == ["train", "test"]
    both = save(tmp_path, images=GREY, labels=LABELS, features=rows, train_embeddings=rows)
    assert load_arrays(both).image_shape == (1, 8, 10)


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        ("photos.npy", "photos_labels.npy"),
        ("images.npy", "labels.npy"),
        ("train_images.npy", "train_labels.npy"),
    ],
)
def test_labels_may_lie_beside_the_images(images: str, labels: str, tmp_path: Path) -> None:
    np.save(tmp_path / images, COLOUR)
    with pytest.raises(FileNotFoundError, match=r"expected the labels of .* in .*_labels\.npy"):
        load_arrays(tmp_path / images)
    np.save(tmp_path / labels, LABELS)
    assert load_arrays(tmp_path / images).train.labels.tolist() == LABELS.tolist()


@pytest.mark.parametrize(
    ("labels", "names", "indices"),
    [
        (np.array([7, 3, 7, 3, 5, 5]), ("3", "5", "7"), [2, 0, 2, 0, 1, 1]),
        (np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), ("0", "1"), [0, 1, 0, 1, 0, 1]),
        (np.array([True, False] * 3), ("0", "1"), [1, 0, 1, 0, 1, 0]),
        (np.array(["b", "a"] * 3), ("a", "b"), [1, 0, 1, 0, 1, 0]),
        (np.array([b"b\xff", b"a"] * 3), ("a", "b\\xff"), [1, 0, 1, 0, 1, 0]),
        (np.eye(3)[LABELS], ("0", "1", "2"), LABELS.tolist()),
        (LABELS.astype(np.uint8)[:, np.newaxis], ("0", "1", "2"), LABELS.tolist()),
    ],
)
def test_labels_of_many_kinds(
    labels: np.ndarray, names: tuple[str, ...], indices: list[int], tmp_path: Path
) -> None:
    dataset = load_arrays(save(tmp_path, images=GREY, labels=labels))
    assert dataset.class_names == names
    assert dataset.train.labels.tolist() == indices
    assert dataset.train.labels.dtype == np.int64


def test_class_names_say_what_labels_count(tmp_path: Path) -> None:
    names = np.array(["ant", "bee", "cow", "doe"])
    dataset = load_arrays(save(tmp_path, images=GREY, labels=LABELS, class_names=names))
    assert dataset.class_names == ("ant", "bee", "cow", "doe")
    with pytest.raises(ValueError, match="labels from 0 to 1, as there are 2 class names, got 2"):
        load_arrays(save(tmp_path, images=GREY, labels=LABELS, class_names=names[:2]))


def test_fractions_become_bytes(tmp_path: Path) -> None:
    dataset = load_arrays(save(tmp_path, images=GREY / 255, labels=LABELS))
    np.testing.assert_array_equal(dataset.train.array[:, 0], GREY)
    dataset = load_arrays(save(tmp_path, images=GREY > 127, labels=LABELS))
    np.testing.assert_array_equal(dataset.train.array[:, 0], 255 * (GREY > 127))
    dataset = load_arrays(save(tmp_path, images=GREY.astype(np.int64), labels=LABELS))
    np.testing.assert_array_equal(dataset.train.array[:, 0], GREY)


def test_other_ranges_are_scaled_the_same_in_all_splits_and_said(tmp_path: Path) -> None:
    path = save(tmp_path, images=GREY.astype(np.float32), labels=LABELS)
    with pytest.warns(DataWarning, match=r"taken for 0 to 255 and rounded"):
        np.testing.assert_array_equal(load_arrays(path).train.array[:, 0], GREY)
    ramp = np.arange(-3, 3, 1.0).reshape(6, 1, 1, 1) * np.ones((6, 1, 2, 2))
    path = save(tmp_path, x_train=ramp, y_train=LABELS, x_test=ramp[:2] + 5, y_test=LABELS[:2])
    with pytest.warns(DataWarning, match=r"pixels from -3 to 3 scaled to 0 to 255; expected"):
        dataset = load_arrays(path)
    assert dataset.train.array.max() < dataset.test.array.max() == 255
    assert dataset.train.array.min() == 0
    path = save(tmp_path, images=GREY.astype(np.uint16) * 16, labels=LABELS)
    with pytest.warns(DataWarning, match="scaled"):
        assert load_arrays(path).train.array.max() == 255


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": COLOUR}, r"expected arrays images and labels .* found images \(6, 8, 10, 3\)"),
        (
            {"emb": GREY[:, 0]},
            r"images and labels \(or x and y, embeddings and labels, or x_train,",
        ),
        ({}, "found nothing"),
        ({"x_train": COLOUR}, "expected labels for 'x_train', found none"),
        ({"y_test": LABELS, "x_train": COLOUR, "y_train": LABELS}, "expected images for 'y_test'"),
        ({"x_test": COLOUR, "y_test": LABELS}, "expected training images, found"),
        ({"images": COLOUR, "x": COLOUR, "y": LABELS}, "x and images could both be meant"),
        ({"x": COLOUR, "y": LABELS[:5]}, "a label for each of 6 images in 'x', got 5 in 'y'"),
        (
            {"x_train": GREY, "y_train": LABELS, "x_test": GREY[:, 0], "y_test": LABELS},
            r"got \(6, 10\); either all splits are rows or none",
        ),
        ({"x": GREY[:, 0], "y": LABELS[:5]}, "a label for each of 6 rows in 'x', got 5 in 'y'"),
        ({"x": GREY[:, 0].astype(str), "y": LABELS}, "expected rows of numbers, got <U"),
        ({"x": GREY[:, :0, 0], "y": LABELS}, r"expected rows of numbers, got uint8 \(6, 0\)"),
        ({"x": [[0.0], [1.0], [np.inf]], "y": [0, 1, 1]}, "'x0': .* up to 1e.30, got inf in row 2"),
        ({"x": GREY[:, 0], "y": np.arange(6)}, "6 different ones in 6 rows"),
        (
            {"x_train": GREY[:, 0], "y_train": LABELS, "x_val": GREY[:, 0, :9], "y_val": LABELS},
            "expected rows of 10 numbers in validation, as in train, got 9",
        ),
        ({"x": COLOUR[:, :3], "y": LABELS}, "where both axes could be; say layout"),
        ({"x": COLOUR[..., :2], "y": LABELS}, "where neither axis could be; say layout"),
        ({"x": COLOUR[:0], "y": LABELS[:0]}, "expected images of numbers, got uint8 .0, 8"),
        ({"x": GREY.astype(str), "y": LABELS}, "expected images of numbers, got <U"),
        ({"x": np.full((6, 2, 2), np.nan), "y": LABELS}, "24 pixels NaN or infinite"),
        ({"x": GREY, "y": LABELS + 0.5}, "expected classes, got 0.5, which looks like a measure"),
        ({"x": GREY, "y": np.array([np.nan, 1, 2, 0, 1, 2])}, "1 label missing"),
        ({"x": GREY, "y": LABELS - 1}, "expected classes from 0, got -1; remove the 2 images"),
        ({"x": GREY[:, 0], "y": LABELS - 1}, "got -1; remove the 2 rows without a label"),
        (
            {"x": GREY, "y": np.ones((6, 3))},
            "expected one label for each image, got 3; several are not taken: give the majority",
        ),
        (
            {"x": GREY[:, 0], "y": np.ones((6, 4))},
            "expected one label for each row, got 4; several",
        ),
        (
            {"x": GREY - 128.5, "y": LABELS},
            r"from -128.5 to .* of shape \(6, 8, 10\), which would be taken for grey images; give "
            r"rows as \(N, F\), for instance the mean .* and grey .* as \(N, 1, H, W\)",
        ),
        (
            {"x_train": GREY / 255, "y_train": LABELS, "x_test": GREY - 9.0, "y_test": LABELS},
            "from -9 to .* would be taken for grey images",
        ),
        ({"x": GREY.astype(np.int8), "y": LABELS}, "would be taken for grey images"),
        ({"x": GREY, "y": np.zeros((6, 3, 2))}, r"expected integers or text of shape \(N\)"),
        ({"x": GREY, "y": LABELS * 0}, "expected at least two classes, got only '0'"),
        ({"x": GREY, "y": np.arange(6)}, "6 images with 6 labels"),
    ],
)
def test_what_cannot_be_a_dataset_is_refused(
    arrays: dict[str, np.ndarray], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        load_arrays(save(tmp_path, **arrays))


def test_an_open_layout_can_be_said(tmp_path: Path) -> None:
    path = save(tmp_path, x=COLOUR[:, :3], y=LABELS)
    assert load_arrays(path, layout="NHWC").image_shape == (3, 3, 10)
    assert load_arrays(path, layout="NCHW").image_shape == (3, 10, 3)
    path = save(tmp_path, x=np.zeros((6, 5, 4, 4), np.uint8) + GREY[:, :1, :1, None], y=LABELS)
    assert load_arrays(path, layout="NCHW").image_shape == (5, 4, 4)
    with pytest.raises(ValueError, match="layout: expected 'NCHW' or 'NHWC', got 'CHW'"):
        load_arrays(path, layout="CHW")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float64, np.float16, bool])
def test_rows_of_numbers_are_a_table(kind: type, tmp_path: Path) -> None:
    rows = np.array([[1, 0, 5], [0, 0, 5], [1, 1, 5], [0, 1, 5]]).astype(kind)
    dataset = load_arrays(
        save(tmp_path, X_train=rows, y_train=list("abab"), X_test=rows[1:], y_test=list("bab"))
    )
    assert dataset.tabular
    assert dataset.input_shape == (3,)
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("x0", "x1", "x2")
    assert dataset.train.array.dtype == np.float32
    np.testing.assert_array_equal(dataset.train.array, rows.astype(np.float32))
    np.testing.assert_array_equal(dataset.test.array, rows[1:].astype(np.float32))
    assert dataset.mean == (0.5, 0.5, 1.0 if kind is bool else 5.0)
    assert dataset.std == (0.5, 0.5, 1.0)


def test_missing_numbers_of_rows_are_filled_from_those_to_train_on(tmp_path: Path) -> None:
    train = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 4.0], [7.0, 4.0]])
    test = np.array([[np.nan, np.nan]])
    path = save(tmp_path, x_train=train, y_train=[0, 1, 0, 1], x_test=test, y_test=[1])
    dataset = load_arrays(path)
    assert dataset.columns is not None
    assert dataset.columns.feature_names == ("x0", "x1", "x1: missing")
    assert dataset.test.array.tolist() == [[4.0, 4.0, 1.0]]


def test_infinite_numbers_of_rows_are_refused_or_taken_for_missing(tmp_path: Path) -> None:
    train = np.array([[1.0], [np.inf], [5.0], [7.0]])
    test = np.array([[-np.inf]])
    path = save(tmp_path, x_train=train, y_train=[0, 1, 0, 1], x_test=test, y_test=[1])
    with pytest.raises(ValueError, match=r"'x0': expected numbers of up to .*, got inf in row 1"):
        load_dataset(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load_dataset(path, on_error="skip")
    assert dataset.train.array.tolist() == [[1, 0], [5, 1], [5, 0], [7, 0]]
    assert dataset.test.array.tolist() == [[5, 1]]
    # Of either split once.
    assert [("-inf" in str(each.message), each.category) for each in caught] == [
        (False, DataWarning),
        (True, DataWarning),
    ]


class Bomb:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, ("raise SystemExit('a pickle was run')",)


@pytest.mark.parametrize("name", ["objects.npz", "objects.npy"])
def test_python_objects_are_refused_unread(name: str, tmp_path: Path) -> None:
    objects = np.array([Bomb()] * 6, dtype=object)
    if name.endswith("npz"):
        np.savez(tmp_path / name, images=GREY, labels=objects, allow_pickle=True)
    else:
        np.save(tmp_path / name, objects, allow_pickle=True)
        np.save(tmp_path / "objects_labels.npy", LABELS)
    with pytest.raises(ValueError, match="holds Python objects, which are not read since they co"):
        load_arrays(tmp_path / name)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected a file, got .*gone\.npz: there is none"):
        load_arrays(tmp_path / "gone.npz")
    with pytest.raises(ValueError, match=r"ends in \.npz or \.npy, got .*data\.mat"):
        load_arrays(tmp_path / "data.mat")
    whole = save(tmp_path, images=COLOUR, labels=LABELS).read_bytes()
    for content in (b"", b"PK", whole[: len(whole) // 2], b"\x93NUMPY\x01\x00"):
        (tmp_path / "cut.npz").write_bytes(content)
        with pytest.raises(ValueError, match="cannot be read as NumPy arrays"):
            load_arrays(tmp_path / "cut.npz")


def test_further_rows_are_read_by_columns_that_were_learned_elsewhere(tmp_path: Path) -> None:
    train = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 4.0], [7.0, 4.0]])
    learned = load_arrays(save(tmp_path, x=train, y=list("abab")))
    assert learned.columns is not None
    like = (learned.columns, ("c", "b", "a"))
    new = load_arrays(save(tmp_path, x=[[np.nan, 9.0]], y=["b"]), like=like)
    assert new.columns == learned.columns
    assert new.class_names == ("c", "b", "a")
    assert new.train.array.tolist() == [[4.0, 9.0, 0.0]]
    assert new.train.labels.tolist() == [1]
    with pytest.raises(ValueError, match="expected rows of 2 numbers, as those learned from, got"):
        load_arrays(save(tmp_path, x=train[:, [0, 1, 1]], y=list("abab")), like=like)
    named = Columns.learn(["width", "height"], train.T)
    with pytest.raises(ValueError, match=r"a table with the columns 'width', 'height'.* an array"):
        load_arrays(save(tmp_path, x=train, y=list("abab")), like=(named, ("a", "b")))
