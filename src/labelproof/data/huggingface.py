"""Datasets of images that Hugging Face's `datasets` saved to disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelproof.data.dataset import Dataset
from labelproof.data.images import LabelledFiles, OnError, StoredImage, dataset_from_files
from labelproof.data.notices import count, leave_out, readable
from labelproof.data.splits import split_name

_LABEL_COLUMNS = ("label", "labels", "target", "class")


def load_huggingface(
    path: str | os.PathLike[str],
    *,
    image: str | None = None,
    label: str | None = None,
    on_error: OnError = "raise",
    short_side: int | None = None,
) -> Dataset:
    """Read a Hugging Face dataset from the folder that `save_to_disk` wrote.

    The Arrow files are mapped into memory and images are decoded on access. It needs
    `pip install 'labelproof[huggingface]'`, but no network. A single split is `"train"`. The labels
    count as not clean.

    Args:
        path: The folder, with `dataset_dict.json` or `state.json` in it.
        image: The column of images; may be left out when there is only one.
        label: The column of labels; may be left out when only one holds classes.
        on_error: `"skip"` leaves out unreadable images and rows without a label, with a warning.
        short_side: As for [`load_folder`][labelproof.data.load_folder].

    >>> load_huggingface(getfixture("tmp_path"))
    Traceback (most recent call last):
        ...
    ValueError: ...: expected a dataset saved with save_to_disk: ...
    """
    root = Path(os.path.abspath(path))
    place = readable(str(path))
    saved = _load(root, place)
    features = next(iter(saved.values())).features
    image = _choose("image", image, features, ("Image",), place)
    label = _choose("label", label, features, ("ClassLabel", "Value"), place)
    named = [str(name) for name in getattr(features[label], "names", None) or ()] or None
    splits: dict[str, LabelledFiles] = {}
    for split, rows in saved.items():
        words = _labels(rows, label, named)
        kept = [row for row, word in enumerate(words) if word]
        if len(kept) < len(words):
            share = f"{len(words) - len(kept):,} of {count(len(words), 'row')}"
            # The test split of a competition has no labels at all.
            strict = on_error if kept else "skip"
            leave_out(f"{place}: {split}: {share} without a label", strict)
        if kept:
            source = _ImageColumn(rows, image)
            images = [StoredImage(f"{split} row {row}", source, row) for row in kept]
            splits[split] = LabelledFiles(images, [words[row] for row in kept])
    name = readable(root.name)
    return dataset_from_files(name, splits, named, on_error, short_side)


@dataclass(frozen=True)
class _ImageColumn:
    """A column of images in Arrow files, whose bytes are read on access; can be pickled."""

    rows: Any
    column: str

    def __getitem__(self, row: int) -> bytes:
        # datasets' own decoder would download an image whose path is a URL.
        image = self.rows.data.column(self.column)[row].as_py()
        return (image and image["bytes"]) or b""


def _load(root: Path, place: str) -> dict[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise ImportError(
            "load_huggingface needs datasets: pip install 'labelproof[huggingface]'"
        ) from error
    try:
        folders = {"train": root}
        if (root / "dataset_dict.json").is_file():
            written = json.loads((root / "dataset_dict.json").read_text("utf-8"))["splits"]
            # A URL in place of a name would be downloaded.
            if not written or any(not name or set(name) & set("/\\:") for name in written):
                raise ValueError(f"expected names of folders in dataset_dict.json, got {written}")
            folders = {split_name(name) or name.casefold(): root / name for name in written}
        ordered = sorted(folders.items(), key=lambda item: item[0] != "train")
        saved = {name: datasets.Dataset.load_from_disk(str(place)) for name, place in ordered}
        for rows in saved.values():
            # Offsets past the end of a corrupted file would crash the interpreter.
            rows.data.table.validate(full=True)
    except Exception as error:
        reason = str(error)[:300]
        raise ValueError(f"{place}: expected a dataset saved with save_to_disk: {reason}") from None
    return saved


def _choose(
    kind: str, requested: str | None, features: Mapping[str, Any], types: Sequence[str], place: str
) -> str:
    """The requested column, or the only one of the first type, or one with a usual name."""
    found = {name: type(feature).__name__ for name, feature in features.items()}
    likely = [name for name, known in found.items() if known == types[0]]
    likely = likely or [name for name in _LABEL_COLUMNS if found.get(name) in types][:1]
    chosen = [requested] if requested is not None else likely
    if len(chosen) == 1 and found.get(chosen[0]) in types:
        return chosen[0]
    columns = ", ".join(f"{name} ({known})" for name, known in found.items())
    expected = f"a column of {place} that is {' or '.join(types)}"
    raise ValueError(f"{kind}: expected {expected}, got {requested!r} of {columns}")


def _labels(rows: Any, column: str, named: Sequence[str] | None) -> list[str]:
    """Labels as text, empty if missing, which is -1 in a ClassLabel."""
    values = rows.data.column(column).to_pylist()
    if named is not None:
        known = dict(enumerate(named))
        return [known.get(value, "") for value in values]
    return ["" if value is None else str(value).strip() for value in values]
