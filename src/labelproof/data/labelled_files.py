"""Labelled image files become a dataset: looked at once, counted, and decoded later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset, Split
from labelproof.data.examination import Examination, examine_images, sample_statistics
from labelproof.data.images import EncodedImages, ImageFiles, select_images
from labelproof.data.notices import count, few, notice
from labelproof.data.unusable import UnusableSamplesError

__all__ = ["LabelledFiles", "OnError", "check_on_error", "dataset_from_files"]

OnError: TypeAlias = Literal["raise", "skip", "later"]
"""What becomes of an image that cannot be used: an error, left out with a warning, or an error when
it is decoded, before which no file is opened. Of a row that cannot be used, the latter two are the
same."""

_UNSEEN = ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
"""Statistics of images that no one has looked at."""

Statistics: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class LabelledFiles:
    """Stored images and the class of each; samples with the same group belong together."""

    files: EncodedImages
    labels: Sequence[int]
    groups: NDArray[np.int64] | None = None


def check_on_error(value: str) -> None:
    """Refuse what is neither `"raise"`, `"skip"` nor `"later"`."""
    if value not in ("raise", "skip", "later"):
        raise ValueError(f"on_error: expected 'raise', 'skip' or 'later', got {value!r}")


def dataset_from_files(
    name: str,
    splits: Mapping[str, LabelledFiles],
    class_names: Sequence[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    statistics: Statistics | None = None,
) -> Dataset:
    """Look at every file, then make a dataset that decodes them when they are asked for.

    With `on_error="raise"` only headers are read here, and a file that is cut off is an error when
    it is decoded. With `"skip"` all pixels are decoded once, so that what is left can be read.
    Images are grey if all of them are, and in colour otherwise. With `"later"` no file is opened:
    for whoever has looked at all of them before, and is going to look at few.

    Args:
        name: What the dataset is called.
        splits: For each split, its files and labels; `"train"` is one of them.
        class_names: A name for each class.
        on_error: What becomes of files that cannot be read.
        short_side: Resize to this shorter side while decoding.
        statistics: Mean and standard deviation of the channels; estimated from 256 training
            images, spread evenly, where they are not given.
    """
    check_on_error(on_error)
    if on_error == "later":
        found = {
            split: Examination([*range(len(content.files))], [], grey=False)
            for split, content in splits.items()
        }
        statistics = statistics or _UNSEEN
    else:
        found = {
            split: examine_images(content.files, full=on_error == "skip")
            for split, content in splits.items()
        }
    _report_unreadable(name, found, on_error)
    kept = {
        split: _select(content, found[split].readable)
        for split, content in splits.items()
        if found[split].readable
    }
    if "train" not in kept:
        raise ValueError(f"{name}: none of the training images can be read")
    _report_untrained(name, kept, class_names)
    mode = "L" if all(found[split].grey for split in kept) else "RGB"
    sources = {
        split: ImageFiles(content.files, mode=mode, short_side=short_side)
        for split, content in kept.items()
    }
    mean, std = statistics or sample_statistics(sources["train"])
    return Dataset(
        name=name,
        splits={
            split: Split(
                source,
                np.asarray(kept[split].labels, dtype=np.int64),
                groups=kept[split].groups,
            )
            for split, source in sources.items()
        },
        class_names=tuple(class_names),
        mean=mean,
        std=std,
        clean=False,
    )


def _report_unreadable(name: str, found: Mapping[str, Examination], on_error: OnError) -> None:
    unreadable = [reason for examination in found.values() for reason in examination.unreadable]
    if not unreadable:
        return
    images = sum(len(examination.readable) for examination in found.values()) + len(unreadable)
    message = f"{name}: {len(unreadable):,} of {count(images, 'image')} cannot be read"
    listed = few(unreadable)
    if on_error == "raise":
        raise UnusableSamplesError(
            f"{message}: {listed}", "mend them, or leave them out with on_error='skip'"
        )
    notice(f"{message} and are left out: {listed}")


def _report_untrained(
    name: str, splits: Mapping[str, LabelledFiles], class_names: Sequence[str]
) -> None:
    counts = np.bincount(np.asarray(splits["train"].labels), minlength=len(class_names))
    missing = [name for name, images in zip(class_names, counts, strict=True) if not images]
    if missing:
        notice(
            f"{name}: {count(len(missing), 'class', 'classes')} without a training image: "
            f"{few(missing)}; nothing can be learned about what is not shown"
        )


def _select(content: LabelledFiles, indices: Sequence[int]) -> LabelledFiles:
    if len(indices) == len(content.files):
        return content
    chosen = select_images(content.files, indices)
    groups = None if content.groups is None else content.groups[list(indices)]
    return LabelledFiles(chosen, [content.labels[index] for index in indices], groups)
