import pickle
from pathlib import Path

import numpy as np
import pytest
from cifar_files import (
    cifar10_records,
    cifar100_records,
    python2_names,
    records,
    write_binary,
    write_python,
)

from labelproof.data import UnsafePickleError, load_coarse_labels, load_dataset
from labelproof.data.cifar import cifar_bytes, read_cifar_binary, read_cifar_python
from labelproof.data.places import FolderPlace

# Longer than one block of records, and not a multiple of it.
LONG = 1025


@pytest.mark.parametrize("classes", [(10,), (20, 100)])
def test_binary_records_come_apart_into_labels_and_pixels(
    tmp_path: Path, classes: tuple[int, ...]
) -> None:
    files = {"a.bin": records(LONG, classes, 1), "b.bin": records(3, classes, 2)}
    write_binary(tmp_path, files)
    read = read_cifar_binary(FolderPlace(tmp_path), ["a.bin", "b.bin"], classes=classes)
    both = np.concatenate([files["a.bin"], files["b.bin"]])
    np.testing.assert_array_equal(read.labels, both[:, :-3072])
    np.testing.assert_array_equal(read.images.reshape(len(both), -1), both[:, -3072:])
    assert read.images.shape == (LONG + 3, 3, 32, 32)
    assert read.images.flags.c_contiguous
    assert cifar_bytes(read) == both.tobytes()


@pytest.mark.parametrize("classes", [(10,), (20, 100)])
def test_both_versions_give_identical_arrays(tmp_path: Path, classes: tuple[int, ...]) -> None:
    files = {"a.bin": records(7, classes, 1), "b.bin": records(3, classes, 2)}
    binary = read_cifar_binary(
        FolderPlace(write_binary(tmp_path / "binary", files)), list(files), classes=classes
    )
    python = read_cifar_python(
        FolderPlace(write_python(tmp_path / "python", files)), ["a", "b"], classes=classes
    )
    for one, other in zip(binary, python, strict=True):
        assert one.dtype == other.dtype == np.uint8
        np.testing.assert_array_equal(one, other)
    assert python.images.flags.writeable


@pytest.mark.parametrize("size", [0, 1, 3072, 3074, 3073 * 4 - 1])
def test_a_binary_file_that_is_cut_short_is_explained(tmp_path: Path, size: int) -> None:
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(size))
    message = f"expected a multiple of 3073 bytes, the size of a record, got {size}: .* fetch it"
    with pytest.raises(ValueError, match=message) as error:
        read_cifar_binary(FolderPlace(tmp_path), ["data_batch_1.bin"], classes=(10,))
    assert str(error.value).startswith(str(tmp_path / "data_batch_1.bin"))


@pytest.mark.parametrize(
    ("classes", "column", "label", "message"),
    [
        ((10,), 0, 10, "expected labels from 0 to 9, got 10 for image 2"),
        ((20, 100), 0, 20, "expected labels from 0 to 19, got 20 for image 2"),
        ((20, 100), 1, 255, "expected labels from 0 to 99, got 255 for image 2"),
    ],
)
def test_a_label_out_of_range_is_explained(
    tmp_path: Path, classes: tuple[int, ...], column: int, label: int, message: str
) -> None:
    content = records(4, classes)
    content[2, column] = label
    write_binary(tmp_path, {"a.bin": content})
    write_python(tmp_path, {"a.bin": content})
    place = FolderPlace(tmp_path)
    with pytest.raises(ValueError, match=message):
        read_cifar_binary(place, ["a.bin"], classes=classes)
    with pytest.raises(ValueError, match=message):
        read_cifar_python(place, ["a"], classes=classes)


DATA = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([1, 2], "expected a batch of CIFAR with 'data' and 'labels', got list"),
        ({"data": DATA}, "expected a batch of CIFAR with 'data' and 'labels', got 'data'"),
        ({"data": DATA, "fine_labels": [1, 2]}, "and 'labels', got 'data', 'fine_labels'"),
        ({"data": DATA, "labels": [1]}, "expected 2 'labels', one for each image, got 1"),
        ({"data": DATA, "labels": 5}, "expected 2 'labels', one for each image, got int"),
        ({"data": DATA, "labels": ["a", "b"]}, "expected 'labels' to be whole numbers"),
        ({"data": DATA, "labels": [-1, 2]}, "expected 'labels' to be whole numbers"),
        ({"data": [1, 2], "labels": [1, 2]}, r"'data' to be uint8 \(N, 3072\), got list"),
        ({"data": DATA[:, :9], "labels": [1, 2]}, r"got uint8 \(2, 9\)"),
        ({"data": DATA.astype("f4"), "labels": [1, 2]}, r"got float32 \(2, 3072\)"),
    ],
)
def test_a_pickle_that_is_no_batch_is_explained(
    tmp_path: Path, batch: object, message: str
) -> None:
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(ValueError, match=message) as error:
        read_cifar_python(FolderPlace(tmp_path), ["data_batch_1"], classes=(10,))
    assert str(error.value).startswith(str(tmp_path / "data_batch_1"))


def test_a_batch_that_would_run_code_is_refused_by_name(tmp_path: Path) -> None:
    write_python(tmp_path / "cifar10" / "cifar-10-batches-py", cifar10_records())
    bad = tmp_path / "cifar10" / "cifar-10-batches-py" / "data_batch_3"
    bad.write_bytes(pickle.dumps({"data": print}, protocol=2))
    with pytest.raises(ValueError, match=r"data_batch_3: refused: .*__builtin__ print") as error:
        load_dataset("cifar10", root=tmp_path)
    assert isinstance(error.value.__cause__, UnsafePickleError)


@pytest.mark.parametrize("write", [write_binary, write_python])
def test_class_names_come_from_the_files_where_they_are_there(tmp_path: Path, write) -> None:
    python = write is write_python
    folder = tmp_path / ("cifar-10-batches-py" if python else "cifar-10-batches-bin")
    write(folder, cifar10_records())
    assert load_dataset("cifar10", root=tmp_path).class_names[:2] == ("airplane", "automobile")
    names = [f"class{number}" for number in range(10)]
    if python:
        (folder / "batches.meta").write_bytes(python2_names({"label_names": names}))
    else:
        (folder / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    assert load_dataset("cifar10", root=tmp_path).class_names == tuple(names)
    if python:
        (folder / "batches.meta").write_bytes(python2_names({"label_names": names[:9]}))
    else:
        (folder / "batches.meta.txt").write_text("one two")
    with pytest.raises(ValueError, match=r"expected 10 class names, got [29]"):
        load_dataset("cifar10", root=tmp_path)


@pytest.mark.parametrize("write", [write_binary, write_python])
def test_cifar100_has_fine_labels_and_coarse_ones_on_request(tmp_path: Path, write) -> None:
    files = cifar100_records()
    folder = "cifar-100-binary" if write is write_binary else "cifar-100-python"
    write(tmp_path / "cifar100" / folder, files)
    dataset = load_dataset("cifar100", root=tmp_path)
    assert dataset.num_classes == 100
    assert dataset.train.labels.dtype == np.int64
    np.testing.assert_array_equal(dataset.train.labels, files["train.bin"][:, 1])
    coarse = load_coarse_labels(root=tmp_path)
    assert coarse["train"].dtype == np.int64
    np.testing.assert_array_equal(coarse["test"], files["test.bin"][:, 0])


def test_a_file_that_shrinks_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    class Shrinking(FolderPlace):
        def size(self, name: str) -> int:
            return super().size(name) * 2

    write_binary(tmp_path, {"a.bin": records(2, (10,))})
    with pytest.raises(ValueError, match="became shorter while read"):
        read_cifar_binary(Shrinking(tmp_path), ["a.bin"], classes=(10,))
