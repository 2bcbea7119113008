"""Trees as `datasets.save_to_disk` writes them (checked against its version 5.2)."""

import io
import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import make_image, pixels, write_images

from labelproof.data.huggingface import load_huggingface
from labelproof.data.notices import DataWarning

CLASSES = {"names": ["cat", "dog", "eel"], "_type": "ClassLabel"}
FEATURES = {"image": {"_type": "Image"}, "label": CLASSES}


def png(seed: int) -> bytes:
    stream = io.BytesIO()
    make_image(seed).save(stream, "PNG")
    return stream.getvalue()


def rows(labels: list[Any]) -> dict[str, list[Any]]:
    images = [{"bytes": png(seed), "path": None} for seed in range(len(labels))]
    return {"image": images, "label": labels}


def save_split(
    folder: Path, columns: dict[str, list[Any]], features: dict[str, Any], *, shards: int = 1
) -> None:
    arrow = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{shard:05d}-of-{shards:05d}.arrow" for shard in range(shards)]
    length = len(next(iter(columns.values())))
    for shard, name in enumerate(names):
        part = slice(shard * length // shards, (shard + 1) * length // shards)
        table = arrow.table({key: values[part] for key, values in columns.items()})
        with (
            arrow.OSFile(str(folder / name), "wb") as file,
            arrow.ipc.new_stream(file, table.schema) as writer,
        ):
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))


def save(folder: Path, splits: dict[str, dict[str, list[Any]]], features: Any = None) -> Path:
    for split, columns in splits.items():
        save_split(folder / split, columns, features or FEATURES)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    return folder


def test_splits_images_and_names_are_read(tmp_path: Path) -> None:
    tree = save(tmp_path / "pets", {"test": rows([2]), "train": rows([0, 1, 1, 0, 2])})
    dataset = load_huggingface(tree)
    assert dataset.name == "pets"
    assert dataset.class_names == ("cat", "dog", "eel")
    assert list(dataset.splits) == ["train", "test"]
    assert dataset.train.labels.tolist() == [0, 1, 1, 0, 2]
    assert dataset.test.labels.tolist() == [2]
    assert not dataset.clean
    for seed in range(5):
        np.testing.assert_array_equal(dataset.train.images[seed], pixels(make_image(seed)))
    assert load_huggingface(tree, short_side=8).image_shape == (3, 8, 12)


def test_a_single_dataset_is_there_to_train_on(tmp_path: Path) -> None:
    save_split(tmp_path, rows([0, 1, 0, 2, 1, 2]), FEATURES, shards=3)
    dataset = load_huggingface(tmp_path)
    assert list(dataset.splits) == ["train"]
    np.testing.assert_array_equal(dataset.train.images[5], pixels(make_image(5)))
    copy = pickle.loads(pickle.dumps(dataset))  # noqa: S301 (made in the line itself)
    np.testing.assert_array_equal(copy.train.images[5], dataset.train.images[5])


def test_images_may_be_paths_or_plain_bytes(tmp_path: Path) -> None:
    write_images(tmp_path, ["0.png", "1.png", "2.png"])
    images = [{"bytes": None, "path": "0.png"}, {"bytes": None, "path": str(tmp_path / "1.png")}]
    images.append({"bytes": png(2), "path": "elsewhere.png"})
    save_split(tmp_path, {"image": images, "label": [0, 1, 2]}, FEATURES)
    dataset = load_huggingface(tmp_path)
    for seed in range(3):
        np.testing.assert_array_equal(dataset.train.images[seed], pixels(make_image(seed)))
    save_split(tmp_path, {"image": [png(s) for s in range(3)], "label": [0, 1, 2]}, FEATURES)
    np.testing.assert_array_equal(load_huggingface(tmp_path).train.images[1], pixels(make_image(1)))


def test_labels_may_be_text_or_bare_numbers(tmp_path: Path) -> None:
    features = {"image": {"_type": "Image"}, "label": {"dtype": "string", "_type": "Value"}}
    save_split(tmp_path, rows(["b", "a", "b"]), features)
    assert load_huggingface(tmp_path).class_names == ("a", "b")
    save_split(tmp_path, rows(["a", "b", "c"]), features)
    with pytest.raises(ValueError, match="3 images with 3 labels"):
        load_huggingface(tmp_path)
    save_split(tmp_path, rows([10, 9, 10]), features)
    assert load_huggingface(tmp_path).train.labels.tolist() == [1, 0, 1]


def test_which_columns_are_meant_can_be_said(tmp_path: Path) -> None:
    columns = {**rows([0, 1, 0]), "coarse": [1, 0, 1], "mask": rows([0, 0, 0])["image"]}
    features = {**FEATURES, "coarse": {**CLASSES, "names": ["x", "y"]}, "mask": {"_type": "Image"}}
    save_split(tmp_path, columns, features)
    with pytest.raises(ValueError, match="2 columns could be the image; name it with image=, of i"):
        load_huggingface(tmp_path)
    with pytest.raises(ValueError, match="2 columns could be the label"):
        load_huggingface(tmp_path, image="image")
    with pytest.raises(
        ValueError, match=r"label: expected one of the columns image .*, got 'fine'"
    ):
        load_huggingface(tmp_path, image="image", label="fine")
    dataset = load_huggingface(tmp_path, image="mask", label="coarse")
    assert dataset.class_names == ("x", "y")
    assert dataset.train.labels.tolist() == [1, 0, 1]


def test_a_split_without_labels_is_left_out_and_named(tmp_path: Path) -> None:
    tree = save(tmp_path, {"train": rows([0, 1, 2, 0]), "test": rows([-1, -1])})
    with pytest.warns(DataWarning, match="test: left out, none of its 2 rows has a label"):
        assert list(load_huggingface(tree).splits) == ["train"]


def test_rows_without_label_or_image_are_fatal_or_left_out(tmp_path: Path) -> None:
    columns = rows([0, 1, None, 2, 0])
    columns["image"][1] = {"bytes": b"nothing", "path": None}
    columns["image"][4] = None
    save_split(tmp_path, columns, FEATURES)
    with pytest.raises(ValueError, match="train: 1 of 5 rows without a label; leave them out"):
        load_huggingface(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load_huggingface(tmp_path, on_error="skip")
    assert dataset.train.labels.tolist() == [0, 2]
    np.testing.assert_array_equal(dataset.train.images[1], pixels(make_image(3)))
    messages = [str(entry.message) for entry in caught]
    assert "1 of 5 rows without a label; left out" in messages[0]
    assert "train row 1: not an image" in messages[1]
    assert "train row 4: the file is empty" in messages[1]
    assert "1 class without a training image: dog" in messages[2]


@pytest.mark.parametrize(
    ("splits", "features", "message"),
    [
        ({"test": [0, 1, 2, 0]}, None, "expected a split train with labels, got test"),
        ({"train": [0, 1, 3, 0]}, None, "train: expected labels from 0 to 2, got 3"),
        ({"train": [0, 1]}, {"label": CLASSES}, "no column could be the image"),
        ({"train": [0, 1]}, {"image": {"_type": "Image"}}, "no column could be the label"),
    ],
)
def test_what_cannot_be_a_dataset_is_refused(
    splits: dict[str, list[int]], features: Any, message: str, tmp_path: Path
) -> None:
    contents = {split: rows(labels) for split, labels in splits.items()}
    with pytest.raises(ValueError, match=message):
        load_huggingface(save(tmp_path, contents, features))


def test_splits_have_to_agree(tmp_path: Path) -> None:
    tree = save(tmp_path, {"train": rows([0, 1, 2, 0]), "test": rows([0])})
    (tree / "test" / "dataset_info.json").write_text(json.dumps({"features": {"image": {}}}))
    with pytest.raises(ValueError, match="the split test has no column 'label'"):
        load_huggingface(tree)


def test_damaged_arrow_files_are_named(tmp_path: Path) -> None:
    save_split(tmp_path, rows([0, 1, 0]), FEATURES)
    file = tmp_path / "data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"data-00000-of-00001\.arrow: cannot be read as Arrow"):
        load_huggingface(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"data-00000-of-00001\.arrow: not there"):
        load_huggingface(tmp_path)


STATE = {"_data_files": [{"filename": "data.arrow"}]}


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        ({}, ValueError, r"found neither dataset_dict\.json nor state\.json"),
        ({"dataset_dict.json": {"splits": []}}, ValueError, "names no splits"),
        ({"dataset_dict.json": {"splits": ["a"]}}, FileNotFoundError, "was the dataset saved who"),
        ({"state.json": STATE}, FileNotFoundError, r"dataset_info\.json: not there"),
        ({"state.json": [1]}, ValueError, r"state\.json: expected a JSON object"),
        ({"state.json": {}, "dataset_info.json": {}}, ValueError, "lacks '_data_files'"),
        ({"state.json": STATE, "dataset_info.json": {"features": None}}, ValueError, "lacks"),
        (
            {"state.json": {"_indices_data_files": [1]}, "dataset_info.json": {}},
            ValueError,
            r"call flatten_indices\(\) and save it again",
        ),
    ],
)
def test_incomplete_trees_are_refused(
    files: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(error, match=message):
        load_huggingface(tmp_path)


def test_what_is_not_json_or_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected a folder, got .*gone: there is none"):
        load_huggingface(tmp_path / "gone")
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(ValueError, match=r"state\.json: cannot be read as JSON"):
        load_huggingface(tmp_path)


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="a Hugging Face dataset needs pyarrow; install it with"):
        load_huggingface(tmp_path)
