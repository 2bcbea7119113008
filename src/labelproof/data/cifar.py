"""The two versions CIFAR-10 and CIFAR-100 are published in: binary records, and pickled batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.pickles import read_pickle
from labelproof.data.places import Place
from labelproof.data.records import Records
from labelproof.data.streams import fill

__all__ = [
    "PIXELS",
    "cifar_bytes",
    "read_cifar_binary",
    "read_cifar_names",
    "read_cifar_python",
]

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
# Records are read into a block that stays in the processor's cache and copied out of it from
# there: labels and pixels alternate in the file, and this way the copy costs next to nothing.
_BLOCK = 512


def read_cifar_binary(place: Place, names: Sequence[str], *, classes: Sequence[int]) -> Records:
    """Read files of the binary version: for each image its labels, then 3,072 bytes of pixels.

    Args:
        place: Where the files are.
        names: The files, in order.
        classes: For each label of a record, how many classes there are: `(10,)` for CIFAR-10,
            `(20, 100)` for CIFAR-100.

    Raises:
        ValueError: A file is not a whole number of records, or holds a label out of range.

    Example:
        >>> from labelproof.data.places import FolderPlace
        >>> folder = getfixture("tmp_path")
        >>> written = (folder / "train.bin").write_bytes(bytes([3]) + bytes(3072))
        >>> records = read_cifar_binary(FolderPlace(folder), ["train.bin"], classes=(10,))
        >>> records.images.shape, records.labels.tolist()
        ((1, 3, 32, 32), [[3]])
    """
    columns = len(classes)
    counts = [_count_records(place, name, columns + PIXELS) for name in names]
    images = np.empty((sum(counts), PIXELS), np.uint8)
    labels = np.empty((sum(counts), columns), np.uint8)
    block = np.empty((_BLOCK, columns + PIXELS), np.uint8)
    done = 0
    for name, count in zip(names, counts, strict=True):
        with place.open(name) as stream:
            for start in range(done, done + count, _BLOCK):
                stop = min(start + _BLOCK, done + count)
                records = block[: stop - start]
                if fill(stream, records) < records.size:
                    raise ValueError(f"{place.title(name)}: the file became shorter while read")
                labels[start:stop] = records[:, :columns]
                images[start:stop] = records[:, columns:]
        _check_labels(place.title(name), labels[done : done + count], classes)
        done += count
    return Records(images.reshape(-1, *SHAPE), labels)


def read_cifar_python(place: Place, names: Sequence[str], *, classes: Sequence[int]) -> Records:
    """Read files of the python version, pickled batches, without running what a pickle may ask for.

    Args:
        place: Where the files are.
        names: The files, in order.
        classes: As for `read_cifar_binary`.

    Raises:
        ValueError: A file is not such a batch, or its pickle asks for anything but data.
    """
    keys = ["labels"] if len(classes) == 1 else ["coarse_labels", "fine_labels"]
    parts = []
    for name in names:
        title = place.title(name)
        batch = read_pickle(place.read(name), title)
        if not isinstance(batch, dict) or not {"data", *keys} <= set(batch):
            raise ValueError(
                f"{title}: expected a batch of CIFAR with 'data' and {_listed(keys)}, "
                f"got {_listed(list(batch)) if isinstance(batch, dict) else type(batch).__name__}"
            )
        images = _batch_images(title, batch["data"])
        labels = [_batch_labels(title, key, batch[key], len(images)) for key in keys]
        parts.append(Records(images, np.stack(labels, axis=1)))
        _check_labels(title, parts[-1].labels, classes)
    images = np.concatenate([part.images for part in parts])
    return Records(images.reshape(-1, *SHAPE), np.concatenate([part.labels for part in parts]))


def read_cifar_names(
    place: Place, name: str, *, key: str | None, expected: int
) -> tuple[str, ...] | None:
    """Read the class names that come with the images, or `None` where their file is missing.

    Args:
        place: Where the files are.
        name: The file: a line for each name, or a pickle.
        key: For a pickle, what the names are called in it.
        expected: How many there have to be.
    """
    if name not in place:
        return None
    content = place.read(name)
    if key is None:
        names: Any = content.decode("utf-8", errors="replace").split()
    else:
        batch = read_pickle(content, place.title(name))
        names = batch.get(key) if isinstance(batch, dict) else None
    if not isinstance(names, list) or len(names) != expected:
        found = len(names) if isinstance(names, list) else "none"
        raise ValueError(f"{place.title(name)}: expected {expected} class names, got {found}")
    return tuple(str(entry) for entry in names)


def cifar_bytes(records: Records) -> bytes:
    r"""Write records as the binary version, whichever version they were read from.

    >>> records = Records(np.zeros((1, 3, 32, 32), np.uint8), np.array([[7, 8]], np.uint8))
    >>> len(cifar_bytes(records)), cifar_bytes(records)[:2]
    (3074, b'\x07\x08')
    """
    pixels = records.images.reshape(len(records.images), PIXELS)
    return np.concatenate([records.labels, pixels], axis=1).tobytes()


def _count_records(place: Place, name: str, record: int) -> int:
    size = place.size(name)
    count, rest = divmod(size, record)
    if rest or not count:
        raise ValueError(
            f"{place.title(name)}: expected a multiple of {record} bytes, the size of a record, "
            f"got {size}: the file is cut short or of another dataset; fetch it again"
        )
    return count


def _check_labels(title: str, labels: NDArray[np.uint8], classes: Sequence[int]) -> None:
    wrong = labels >= np.array(classes)
    if wrong.any():
        record, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{title}: expected labels from 0 to {classes[column] - 1}, got "
            f"{labels[record, column]} for image {record}: the file is damaged or of another "
            "dataset; fetch it again"
        )


def _batch_images(title: str, data: object) -> NDArray[np.uint8]:
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        got = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise ValueError(f"{title}: expected 'data' to be uint8 (N, {PIXELS}), got {got}")
    return data


def _batch_labels(title: str, key: str, labels: object, count: int) -> NDArray[np.uint8]:
    if not isinstance(labels, list) or len(labels) != count:
        got = len(labels) if isinstance(labels, list) else type(labels).__name__
        raise ValueError(f"{title}: expected {count} {key!r}, one for each image, got {got}")
    if not all(type(label) is int and 0 <= label < 256 for label in labels):
        raise ValueError(f"{title}: expected {key!r} to be whole numbers from 0")
    return np.array(labels, np.uint8)


def _listed(keys: Sequence[object]) -> str:
    return ", ".join(repr(key) for key in keys[:8]) or "nothing"
