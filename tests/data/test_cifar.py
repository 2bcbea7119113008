import builtins
import os
import pickle
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cifar_files import cifar10_records, cifar100_records, python2_batch, write_binary, write_python
from numpy.typing import NDArray

from labelproof.data import UnsafePickleError, load_coarse_labels, load_dataset
from labelproof.data.cifar import CIFAR10_LAYOUTS, CIFAR100_LAYOUTS, read_pickle

Write = Callable[[Path, Mapping[str, NDArray[np.uint8]]], Path]
WRITERS: list[Write] = [write_binary, write_python]


def test_both_versions_give_what_was_written_and_coarse_labels_on_request(tmp_path: Path) -> None:
    ten, hundred = cifar10_records(), cifar100_records()
    for layout, files, write in (
        *zip(CIFAR10_LAYOUTS, (ten, ten), WRITERS, strict=True),
        *zip(CIFAR100_LAYOUTS, (hundred, hundred), WRITERS, strict=True),
    ):
        splits = layout.read(write(tmp_path / layout.folder, files))
        for split, batches in layout.batches.items():
            images, labels = splits[split]
            written = np.concatenate([files[f"{name}.bin"] for name in batches])
            np.testing.assert_array_equal(labels, written[:, :-3072])
            np.testing.assert_array_equal(images.reshape(len(written), -1), written[:, -3072:])
            assert images.shape[1:] == (3, 32, 32)
            assert images.flags.c_contiguous
            assert images.flags.writeable
        contents = {name: content.tobytes() for name, content in files.items()}
        assert dict(layout.published(splits)) == contents
    files = cifar100_records()
    write_binary(tmp_path / "cifar100", files)
    dataset, coarse = load_dataset("cifar100", root=tmp_path), load_coarse_labels(root=tmp_path)
    assert dataset.num_classes == 100
    np.testing.assert_array_equal(dataset.train.labels, files["train.bin"][:, 1])
    np.testing.assert_array_equal(coarse["test"], files["test.bin"][:, 0])
    assert dataset.train.labels.dtype == coarse["test"].dtype == np.int64


DATA = np.zeros((2, 3072), np.uint8)
NO_BATCH: dict[str, object] = {
    "damaged": [1, 2],
    "'data'.*'labels'": {},
    "'labels'": {"data": DATA, "fine_labels": [1, 2]},
    "'labels';": {"data": DATA, "labels": [1]},
    "'labels'; ": {"data": DATA, "labels": 5},
    "'labels'; f": {"data": DATA, "labels": ["a", "b"]},
    "below 10, got -1": {"data": DATA, "labels": [-1, 2]},
    "'data'": {"data": [1, 2], "labels": [1, 2]},
    "'data',": {"data": DATA[:, :9], "labels": [1, 2]},
    "refused: .*array": {"data": DATA.astype("f4"), "labels": [1, 2]},
    "refused: .*print": {"data": print},
}


def test_a_damaged_batch_is_named(tmp_path: Path) -> None:
    folder = write_binary(tmp_path / "cifar10", cifar10_records())
    for size in (0, 1, 3072, 3074, 3073 * 4 - 1):
        (folder / "data_batch_2.bin").write_bytes(bytes(size))
        with pytest.raises(ValueError, match=rf"data_batch_2\.bin: .* 3073 bytes.* got {size}"):
            load_dataset("cifar10", root=tmp_path)
    folder = write_python(tmp_path / "b" / "cifar10", cifar10_records())
    for message, batch in NO_BATCH.items():
        (folder / "data_batch_3").write_bytes(pickle.dumps(batch, protocol=2))
        with pytest.raises(ValueError, match=f"data_batch_3: .*{message}"):
            load_dataset("cifar10", root=tmp_path / "b")
    for number, write in enumerate(WRITERS):
        for column, label in ((0, 20), (1, 255)):
            files = cifar100_records()
            files["train.bin"][2, column] = label
            write(tmp_path / str(number) / "cifar100", files)
            with pytest.raises(ValueError, match=rf"train.*: .*got {label} for image 2"):
                load_dataset("cifar100", root=tmp_path / str(number))


PLAIN = {
    "labels": [1, 2, 300, 70000, -5, 2**70],
    "nested": {"a": [None, True, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ()], "half": 0.5},
    "text": "Zürich",
    "raw": b"\x00\xff",
}


def test_plain_data_and_arrays_come_out_as_they_went_in() -> None:
    for protocol in range(6):
        content = {**PLAIN, "raw": ""} if protocol < 2 else PLAIN
        assert read_pickle(pickle.dumps(content, protocol=protocol), "file") == content
        array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
        for each in (array, np.asfortranarray(array)) if 2 <= protocol < 5 else ():
            read = read_pickle(pickle.dumps({"data": each}, protocol=protocol), "file")["data"]
            assert read.dtype == np.uint8
            np.testing.assert_array_equal(read, array)
    data = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)
    content = python2_batch(data, {"labels": [1, 2, 3], "filenames": ["a.png", "b.png", "c.png"]})
    trusted = pickle.loads(content, encoding="latin1")  # noqa: S301 (written above)
    np.testing.assert_equal(read_pickle(content, "data_batch_1"), trusted)


class Runs:
    """Runs a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any):
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


def test_a_hostile_pickle_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    command, opens = f"touch {canary}", f"open({str(canary)!r}, 'w')"
    hostile = [
        pickle.dumps(Runs(os.system, command)),
        f"cos\nsystem\n(S'{command}'\ntR.".encode(),
        pickle.dumps(Runs(builtins.eval, opens), protocol=2),
        pickle.dumps(Runs(builtins.exec, opens), protocol=5),
        pickle.dumps(Runs(open, str(canary), "w")),
        b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'tofile'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",  # an attribute by a dotted name
        b"cnumpy\nload\n(S'file'\ntR.",
        f"(S'{command}'\nios\nsystem\n.".encode(),
        f"(cos\nsystem\nS'{command}'\no.".encode(),
        pickle.dumps(Path("x")),
        b"Pname\n.",  # a reference to something outside
        b"\x80\x02NQ.",
        *(
            pickle.dumps({"data": np.array(*given)}, protocol=2)
            for given in (([1, "a"], object), (["a"],), ([(1, None)], "u1,O"))
        ),
    ]
    for content in hostile:
        with pytest.raises(UnsafePickleError, match=r"^batch: refused: the pickle"):
            read_pickle(content, "batch")
        assert not canary.exists(), content


DAMAGED = [
    b"c_codecs\nencode\n(Vabc\nVrot13\ntR.",  # a codec that is no text's
    b"cnumpy\ndtype\n((lp0\ntR.",  # a dtype alone
    b"\x80\x02h\x05.",  # a memo never written
    b"\x80\x02]r\xff\xff\xff\xff.",  # a memo far away
    b"\x80\x02](K\x01tR.",  # a list called
    b"cnumpy\nndarray\n((I1000000000000\nttR.",  # ndarray as a function
    b"\x80\x02}K\x01cnumpy.core.multiarray\n_reconstruct\n)Rs.",  # an array without content
    b"\x80\x02cnumpy\ndtype\n}K\x01K\x02sb0}.",  # a name that is given a state
    b"\x80\x02\x8e" + struct.pack("<Q", 2**60) + b"x.",  # claims bytes
    *(
        python2_batch(DATA[:1], {}).replace(b"J\x01\0\0\0", size)  # claims an array
        for size in (b"J\xff\xff\xff\x7f", b"J\xfe\xff\xff\xff")
    ),
    pickle.dumps({"data": np.zeros(2, "u1")}, protocol=2).replace(
        b"K\x02\x85", b"J\xff\xff\xff\x7fX\x01\0\0\0a\x86"
    ),  # a shape of text
]
WHOLE = python2_batch(np.zeros((2, 5), np.uint8), {"labels": [1, 2], "names": ["a", "b"]})


def test_a_damaged_pickle_is_explained() -> None:
    for content in (*DAMAGED, *(WHOLE[:length] for length in range(len(WHOLE)))):
        with pytest.raises(ValueError, match=r"^batch: truncated or damaged"):
            read_pickle(content, "batch")
