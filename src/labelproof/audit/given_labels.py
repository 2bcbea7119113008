"""Labels alone, from an array file or a file of lines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.array_files import decode_text, why_unreadable
from labelproof.data.notices import readable
from labelproof.data.row_labels import MISSING, plain_labels
from labelproof.data.whole_numbers import is_whole, plain_number

__all__ = ["SUFFIXES", "admit_labels", "read_given", "read_names"]

SUFFIXES = (".npy", ".txt")
"""How files of labels alone end; in a table they are a column."""

_LARGEST = 2**53
"""Beyond it, two whole numbers may be the same as floats."""
_DIGITS = 18
"""A number of as many fits into an int64; a longer one is a name, not an index."""


def read_given(path: str | os.PathLike[str]) -> NDArray[Any]:
    r"""Labels from a file: class indices, or the names of classes.

    Args:
        path: A `.npy` file of whole numbers or text, or a `.txt` file with a label a line. Lines
            that are all whole numbers are class indices.

    Raises:
        ValueError: It holds something else.

    Example:
        >>> file = getfixture("tmp_path") / "labels.txt"
        >>> _ = file.write_text("cat\ndog\ncat\n")
        >>> read_given(file).tolist()
        ['cat', 'dog', 'cat']
    """
    place = readable(str(path))
    if Path(path).suffix.lower() == ".txt":
        names = admit_labels(np.array(read_names(path)), place=place)
        return names.astype(np.int64) if all(map(_is_index, names.tolist())) else names
    try:
        # Not numpy.load, which opens archives as well and whose errors advise to run what is there.
        with open(path, "rb") as stream:
            labels = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        advice = "save names as text: np.save(path, np.array(labels, dtype=str))"
        reason = why_unreadable(error, advice=advice)
        raise ValueError(
            f"{place}: expected class indices or names as numpy.save writes them ({reason})"
        ) from None
    return admit_labels(labels, place=place)


def admit_labels(labels: ArrayLike, *, place: str = "labels") -> NDArray[Any]:
    """Labels as whole numbers or text, or what is wrong with them.

    Args:
        labels: One for each sample: whole numbers, which may have come as floats, or text. In text,
            whole numbers are brought to one form, as in the column of a table.
        place: Where they are from, for the message.

    Raises:
        ValueError: A label is missing, or they are something else.

    Example:
        >>> admit_labels([2.0, 10.0]), admit_labels(["2.0", "10"])
        (array([ 2, 10]), array(['2', '10'], dtype='<U2'))
        >>> admit_labels(["cat", None])
        Traceback (most recent call last):
            ...
        ValueError: labels: expected a label for each sample, got none for 1
    """
    array = decode_text(np.asanyarray(labels))
    if array.ndim == 1 and array.dtype.kind == "O":
        array = _of_objects(array, place)
    kind = array.dtype.kind
    if array.ndim != 1 or kind not in "iufUT":
        raise ValueError(
            f"{place}: expected one class index or name per sample, got {array.dtype} of shape "
            f"{array.shape}"
        )
    if kind in "iu":
        return array
    if kind == "f":
        _refuse_missing(np.isnan(array), place)
        broken = array[(array != np.rint(array)) | (np.abs(array) > _LARGEST)]
        if len(broken):
            raise ValueError(
                f"{place}: expected one class index or name per sample, got {broken[0]:g}, which "
                "looks like a measurement (regression)"
            )
        return array.astype(np.int64)
    texts = [text.strip() for text in array.tolist()]
    _refuse_missing(np.array([text.casefold() in MISSING for text in texts]), place)
    plain = plain_labels(
        texts,
        f"{place}: expected one class index or name per sample",
        "write the classes as whole numbers or words",
    )
    zeros = [
        text.split(".")[0] if is_whole(number.removeprefix("-")) else number
        for text, number in zip(texts, plain, strict=True)
    ]
    # Where leading zeros tell classes apart, they stay.
    return np.array(zeros if len(set(zeros)) > len(set(plain)) else plain, dtype=str)


def _is_index(name: str) -> bool:
    return is_whole(name) and plain_number(name) == name and len(name) <= _DIGITS


def _of_objects(array: NDArray[Any], place: str) -> NDArray[Any]:
    """What pandas gives as objects, as the text or the numbers that it is."""
    values: list[Any] = array.tolist()
    # The missing value of pandas does not say whether it equals itself; it is known by its name.
    gone = [value is None or str(value) in ("nan", "NaT", "<NA>") for value in values]
    _refuse_missing(np.array(gone), place)
    if all(isinstance(value, str) for value in values):
        return np.array(values, dtype=str)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return np.array(values)
    return array


def _refuse_missing(missing: NDArray[np.bool_], place: str) -> None:
    gone = np.flatnonzero(missing)
    if len(gone):
        raise ValueError(f"{place}: expected a label for each sample, got none for {gone[0]}")


def read_names(path: str | os.PathLike[str]) -> list[str]:
    r"""The lines of a file of names, none of them empty.

    Raises:
        ValueError: A line is empty, or the file is no text.

    Example:
        >>> file = getfixture("tmp_path") / "names.txt"
        >>> _ = file.write_text("cat\nsnow leopard\n")
        >>> read_names(file)
        ['cat', 'snow leopard']
    """
    place = readable(str(path))
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: expected text in UTF-8 ({error})") from None
    # Not splitlines: a name may hold the line ends of other alphabets.
    lines = [line.strip() for line in text.rstrip("\n\r").split("\n")]
    if "" in lines:
        where = "an empty file" if lines == [""] else f"an empty line {lines.index('') + 1}"
        raise ValueError(f"{place}: expected a name in each line, got {where}")
    return lines
