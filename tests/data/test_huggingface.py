import io
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import make_image, pixels
from notices import told

from labelproof.data.huggingface import load_huggingface
from labelproof.data.images import sample_names

datasets = pytest.importorskip("datasets")
CLASSES = ["cat", "dog", "eel"]


def png(seed: int) -> bytes:
    stream = io.BytesIO()
    make_image(seed).save(stream, "PNG")
    return stream.getvalue()


def split(labels: list[Any], label: Any = None, images: list[Any] | None = None) -> Any:
    """A split of as many images as labels, of a ClassLabel unless something else is said."""
    rows = [{"bytes": png(seed), "path": None} for seed in range(len(labels))]
    features = {"image": datasets.Image(), "label": label or datasets.ClassLabel(names=CLASSES)}
    columns = {"image": images or rows, "label": labels}
    return datasets.Dataset.from_dict(columns, datasets.Features(features))


def save(folder: Path, **splits: Any) -> Path:
    datasets.DatasetDict(splits).save_to_disk(str(folder))
    return folder


@pytest.fixture(autouse=True)
def _quiet() -> None:
    datasets.disable_progress_bars()


def test_splits_images_and_names_are_read(tmp_path: Path) -> None:
    tree = save(tmp_path / "pets", test=split([2]), train=split([0, 1, 1, 0, 2]))
    dataset = load_huggingface(tree)
    assert (dataset.name, dataset.class_names) == ("pets", ("cat", "dog", "eel"))
    assert list(dataset.splits) == ["train", "test"]
    assert dataset.train.labels.tolist() == [0, 1, 1, 0, 2]
    assert dataset.test.labels.tolist() == [2]
    assert not dataset.clean
    for seed in range(5):
        np.testing.assert_array_equal(dataset.train.images[seed], pixels(make_image(seed)))
    assert load_huggingface(tree, short_side=8).image_shape == (3, 8, 12)
    assert sample_names(dataset.train, tree)[4] == "train row 4"
    split([0, 1, 0, 2, 1, 2]).save_to_disk(str(tmp_path / "one"), num_shards=3)
    dataset = load_huggingface(tmp_path / "one")
    assert list(dataset.splits) == ["train"]
    copy = pickle.loads(pickle.dumps(dataset))  # noqa: S301 (made in the line itself)
    for each in (dataset, copy):
        np.testing.assert_array_equal(each.train.images[5], pixels(make_image(5)))


def test_labels_may_be_text_or_bare_numbers(tmp_path: Path) -> None:
    for kind, labels, found in (
        ("string", ["b", "a", "b"], ("a", "b")),
        ("int64", [10, 9, 10], ("9", "10")),
    ):
        split(labels, datasets.Value(kind)).save_to_disk(str(tmp_path / kind))
        dataset = load_huggingface(tmp_path / kind)
        assert dataset.class_names == found
        assert dataset.train.labels.tolist() == [1, 0, 1]


def test_which_columns_are_meant_can_be_said(tmp_path: Path) -> None:
    rows = split([0, 1, 0])
    rows = rows.add_column("mask", rows.data.column("image").to_pylist())
    rows = rows.add_column("coarse", [1, 0, 1]).cast_column("mask", datasets.Image())
    rows = rows.cast_column("coarse", datasets.ClassLabel(names=["x", "y"]))
    rows.save_to_disk(str(tmp_path))
    for image, label, argument in (
        (None, None, "image"),
        ("image", None, "label"),
        ("label", None, "image"),
        ("image", "fine", "label"),
    ):
        with pytest.raises(ValueError, match=rf"^{argument}: .*coarse \(ClassLabel\)"):
            load_huggingface(tmp_path, image=image, label=label)
    dataset = load_huggingface(tmp_path, image="mask", label="coarse")
    assert dataset.class_names == ("x", "y")
    assert dataset.train.labels.tolist() == [1, 0, 1]


def test_rows_without_label_or_image_are_fatal_or_left_out(tmp_path: Path) -> None:
    images = [{"bytes": png(seed), "path": None} for seed in range(5)]
    images[1] = {"bytes": b"nothing", "path": None}
    images[4] = None  # type: ignore[call-overload]
    split([0, 1, None, 2, 0], images=images).save_to_disk(str(tmp_path / "rows"))
    with pytest.raises(ValueError, match="train: 1 of 5 rows without a label"):
        load_huggingface(tmp_path / "rows")
    dataset, messages = told(load_huggingface, tmp_path / "rows", on_error="skip")
    assert dataset.train.labels.tolist() == [0, 2]
    np.testing.assert_array_equal(dataset.train.images[1], pixels(make_image(3)))
    assert sample_names(dataset.train, tmp_path) == ["train row 0", "train row 3"]
    for text in ("1 of 5 rows without", "train row 1: not an", "train row 4: the file is empty"):
        assert text in "\n".join(messages)
    tree = save(tmp_path / "splits", train=split([0, 1, 2, 0]), test=split([-1, -1]))
    dataset, messages = told(load_huggingface, tree)
    assert list(dataset.splits) == ["train"]
    assert messages == [f"{tree}: test: 2 of 2 rows without a label; left out"]


def test_what_cannot_be_a_dataset_is_refused(tmp_path: Path) -> None:
    for number, (splits, message) in enumerate(
        [
            ({"test": split([0, 1, 2, 0])}, "expected a split train with labels, got test"),
            ({"train": split([0, 1]).remove_columns("image")}, "image: expected"),
            ({"train": split([0, 1]).remove_columns("label")}, "label: expected"),
        ]
    ):
        with pytest.raises(ValueError, match=message):
            load_huggingface(save(tmp_path / str(number), **splits))


def test_damaged_folders_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "data-00000-of-00001.arrow"
    refused = pytest.raises(ValueError, match="expected a dataset saved with save_to_disk")
    split(["cat", "dog", "cat"], datasets.Value("string")).save_to_disk(str(tmp_path))
    offsets = np.array([0, 3, 6, 9], "<i4").tobytes()
    whole = file.read_bytes()
    assert whole.count(offsets) == 1
    # Without a look at them, whoever asks for the third label reads a gigabyte beyond the file.
    file.write_bytes(whole.replace(offsets, np.array([0, 3, 6, 1 << 30], "<i4").tobytes()))
    with refused:
        load_huggingface(tmp_path)


def test_a_split_that_is_an_address_is_not_fetched(tmp_path: Path) -> None:
    tree = save(tmp_path, train=split([0, 1, 0]))
    for name in ("zip://x::http://localhost/x.zip", "../elsewhere", ""):
        (tree / "dataset_dict.json").write_text(json.dumps({"splits": [name]}))
        with pytest.raises(ValueError, match=r"names of folders in dataset_dict\.json"):
            load_huggingface(tree)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'labelproof\[huggingface\]'"):
        load_huggingface(tmp_path)
