"""CIFAR-10 and CIFAR-100 in the publisher's two versions: binary records and pickles.

The python version consists of pickles, which could run any code when they are loaded; `read_pickle`
admits plain data only.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import pickle
import pickletools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = tuple[NDArray[np.uint8], NDArray[np.uint8]]
"""Images `(N, C, H, W)` and labels `(N, K)` as they were published."""

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class CifarLayout:
    """One of the four archives, unpacked."""

    home: str  # the dataset's own folder below the root
    folder: str  # in the archive
    archive: str
    batches: Mapping[str, tuple[str, ...]]  # the files of each split, in order
    classes: tuple[int, ...]  # number of classes, for each label of an image
    ending: str = ""

    @property
    def version(self) -> str:
        """The publisher's name of this version."""
        return "binary version" if self.ending else "python version"

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders below the root that may hold its files, the preferred one first."""
        return (f"{self.home}/{self.folder}", self.home, self.folder)

    @property
    def files(self) -> tuple[str, ...]:
        """The files it needs."""
        return tuple(f"{name}{self.ending}" for names in self.batches.values() for name in names)

    def read(self, path: Path) -> dict[str, Arrays]:
        """Read both splits."""
        splits = {}
        for split, batches in self.batches.items():
            parts = [self._read_batch(path / f"{name}{self.ending}") for name in batches]
            images, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            splits[split] = images.reshape(-1, 3, 32, 32), labels
        return splits

    def published(self, splits: Mapping[str, Arrays]) -> Iterator[tuple[str, bytes]]:
        """The files of the binary version, rebuilt from what was read."""
        for split, names in self.batches.items():
            images, labels = splits[split]
            records = np.hstack([labels, images.reshape(-1, _PIXELS)])
            # Files of equal length; an uneven rest fails its checksum.
            length = -(-len(images) // len(names))
            for index, name in enumerate(names):
                part = records[index * length : (index + 1) * length]
                yield f"{name}.bin", part.tobytes()

    def _read_batch(self, path: Path) -> Arrays:
        """Pixels `(N, 3072)` and labels `(N, K)` of one file."""
        content = np.fromfile(path, np.uint8)
        if self.ending:
            # For each image its labels, then its pixels.
            record = len(self.classes) + _PIXELS
            if not len(content) or len(content) % record:
                raise ValueError(
                    f"{path}: expected a multiple of {record} bytes, got {len(content)}"
                )
            labels, images = np.split(content.reshape(-1, record), [len(self.classes)], axis=1)
        else:
            keys = ["labels"] if len(self.classes) == 1 else ["coarse_labels", "fine_labels"]
            batch = read_pickle(content.tobytes(), str(path))
            images: Any = batch.get("data")
            labels = np.empty(0)
            with contextlib.suppress(KeyError, OverflowError, TypeError, ValueError):
                labels = np.array([batch[key] for key in keys], np.int64).T
            shapes = (len(labels), _PIXELS), (len(labels), len(keys))
            if (getattr(images, "shape", None), labels.shape) != shapes:
                expected = f"'data', uint8 (N, {_PIXELS}), and {' and '.join(map(repr, keys))}"
                raise ValueError(f"{path}: expected a dict with {expected}")
        wrong = np.argwhere((labels < 0) | (labels >= np.array(self.classes)))
        if len(wrong):
            record, column = wrong[0]
            got = f"{labels[record, column]} for image {record}"
            raise ValueError(f"{path}: expected labels below {self.classes[column]}, got {got}")
        return images, labels.astype(np.uint8)


def read_gzip(path: Path, limit: int) -> bytes:
    """Unpack a gzipped file of at most `limit` uncompressed bytes."""
    try:
        with gzip.open(path) as stream:
            content = stream.read(limit + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: truncated or damaged ({error})") from error
    if len(content) > limit:
        raise ValueError(f"{path}: unpacks to more than {limit} bytes; unpack it first")
    return content


class UnsafePickleError(ValueError):
    """A pickle that contains more than plain data."""


def read_pickle(content: bytes, name: str) -> dict[Any, Any]:
    """Read a pickled dict of plain data: numbers, text, bytes, lists, tuples, arrays of bytes.

    Text written by Python 2, which does not tell text from bytes, comes out as `str` in Latin-1.
    Only the dict's own values may be arrays. Errors begin with `name`.

    >>> read_pickle(pickle.dumps({"labels": [3, 8]}, protocol=2), "batch")
    {'labels': [3, 8]}
    >>> read_pickle(pickle.dumps(print), "batch")
    Traceback (most recent call last):
        ...
    labelproof.data.cifar.UnsafePickleError: batch: refused: the pickle asks for
    'builtins.print', which is code, not data
    """
    try:
        # The unpickler allocates memory for every entry of its memo up to the largest.
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name in ("PUT", "LONG_BINPUT") and (argument or 0) > len(content):
                raise ValueError(f"a memo of {argument} entries")
        value = _DataUnpickler(io.BytesIO(content), encoding="latin1").load()
        return {
            key: item.array() if isinstance(item, _Part) else item for key, item in value.items()
        }
    except UnsafePickleError as error:
        raise UnsafePickleError(f"{name}: refused: the pickle {error}") from None
    # A damaged pickle can raise any error.
    except Exception as error:
        raise ValueError(f"{name}: truncated or damaged ({str(error)[:80]})") from error


class _Part:
    """Stands for an array or a dtype; NumPy's own would allocate whatever size a pickle claims."""

    def __init__(self, *arguments: object):
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def array(self) -> NDArray[np.uint8]:
        _, shape, dtype, fortran, content = self.state
        if dtype.arguments[0] != "u1":
            raise UnsafePickleError("holds an array of something else than bytes")
        content = content.encode("latin1") if isinstance(content, str) else content
        if min(shape) < 0 or math.prod(shape) != len(content):
            raise ValueError("an array whose bytes do not fit its shape")
        return np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


class _DataUnpickler(pickle.Unpickler):
    """Python's unpickler, restricted to the names that pickled arrays and bytes refer to."""

    names = {  # noqa: RUF012
        "numpy.ndarray": None,
        "numpy.dtype": _Part,
        # NumPy moved its modules in version 2, so files have either name.
        "numpy.core.multiarray._reconstruct": _Part,
        "numpy._core.multiarray._reconstruct": _Part,
        # How Python 3 pickles bytes for Python 2. A pickle cannot modify a built-in.
        "_codecs.encode": str.encode,
    }

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = f"{module_name}.{global_name}"
        if name not in self.names:
            raise UnsafePickleError(f"asks for {name[:80]!r}, which is code, not data")
        return self.names[name]

    def persistent_load(self, pid: Any) -> Any:
        raise UnsafePickleError("refers to something outside itself")


_TEN = (
    {"train": tuple(f"data_batch_{part}" for part in range(1, 6)), "test": ("test_batch",)},
    (10,),
)
_HUNDRED = {"train": ("train",), "test": ("test",)}, (20, 100)
CIFAR10_LAYOUTS = (
    CifarLayout("cifar10", "cifar-10-batches-bin", "cifar-10-binary.tar.gz", *_TEN, ".bin"),
    CifarLayout("cifar10", "cifar-10-batches-py", "cifar-10-python.tar.gz", *_TEN),
)
CIFAR100_LAYOUTS = (
    CifarLayout("cifar100", "cifar-100-binary", "cifar-100-binary.tar.gz", *_HUNDRED, ".bin"),
    CifarLayout("cifar100", "cifar-100-python", "cifar-100-python.tar.gz", *_HUNDRED),
)
