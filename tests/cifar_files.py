"""Files as CIFAR's publisher writes them, small ones for tests."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PIXELS = 3072


def python2_batch(data: NDArray[np.uint8], lists: Mapping[str, Sequence[int] | Sequence[str]]):
    """A batch, instruction by instruction as Python 2 and the numpy of 2009 pickled it.

    No Python 3 writes this: text and bytes are one type, and arrays keep their pixels in it.
    """
    items = b"".join(_text(key) + _list(values) for key, values in lists.items())
    return b"\x80\x02}q\x01(" + items + _text("data") + _array(data) + b"u."


def records(count: int, classes: Sequence[int], seed: int = 0) -> NDArray[np.uint8]:
    """Random images in the binary version: `(N, labels + 3072)`."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, (count, len(classes)), dtype=np.uint8)
    return np.hstack([labels, generator.integers(0, 256, (count, PIXELS), dtype=np.uint8)])


def cifar10_records(count: int = 2) -> dict[str, NDArray[np.uint8]]:
    """Binary records for each file of CIFAR-10."""
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    return {name: records(count, (10,), seed) for seed, name in enumerate(names)}


def cifar100_records(count: int = 6) -> dict[str, NDArray[np.uint8]]:
    """Binary records for each file of CIFAR-100."""
    return {name: records(count, (20, 100), 7) for name in ("train.bin", "test.bin")}


def write_binary(folder: Path, files: Mapping[str, NDArray[np.uint8]]) -> Path:
    """Write files of the binary version."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.tobytes())
    return folder


def write_python(folder: Path, files: Mapping[str, NDArray[np.uint8]]) -> Path:
    """Write the same images and labels in the python version."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        labels, data = content[:, :-PIXELS], np.ascontiguousarray(content[:, -PIXELS:])
        keys = ["labels"] if labels.shape[1] == 1 else ["coarse_labels", "fine_labels"]
        lists = {key: labels[:, column].tolist() for column, key in enumerate(keys)}
        filenames = {"filenames": [f"image_{index}.png" for index in range(len(data))]}
        path = folder / name.removesuffix(".bin")
        path.write_bytes(python2_batch(data, {**lists, **filenames}))
    return folder


def _text(text: str) -> bytes:
    return b"U" + bytes([len(text)]) + text.encode("latin-1") + b"q\x02"


def _list(values: Sequence[int] | Sequence[str]) -> bytes:
    written = [_text(v) if isinstance(v, str) else b"K" + bytes([v]) for v in values]
    return b"]q\x05(" + b"".join(written) + b"e"


def _array(data: NDArray[np.uint8]) -> bytes:
    rows, columns = data.shape
    content = data.tobytes()
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\t"
        + (b"(K\x01" + b"J" + struct.pack("<i", rows) + b"M" + struct.pack("<H", columns) + b"\x86")
        + b"cnumpy\ndtype\nq\nU\x02u1K\x00K\x01\x87Rq\x0b"
        + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + (b"\x89T" + struct.pack("<i", len(content)) + content + b"tb")
    )
