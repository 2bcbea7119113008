"""Whether data is the published dataset, judged by its number of images.

A data root may hold a part of a dataset under its name, to try something out. What is trained on
that is a run like any other, but no cell of the paper's tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from labelproof.data.dataset import Dataset
from labelproof.data.published import DATASETS, data_root
from labelproof.training.record import RunRecord, sizes


def has_published_size(name: str, counts: Mapping[str, int]) -> bool:
    """Whether a dataset has as many images as the one that was published under its name.

    Of data that no one published, and of WebVision, of which not every image can be had any more,
    there is no number to hold them against: they pass.

    Args:
        name: The dataset's.
        counts: Its training and test images; what is not there is not known, and passes.

    Example:
        >>> has_published_size("mnist", {"train": 60_000, "test": 10_000})
        True
        >>> has_published_size("mnist", {"train": 1_000, "test": 10_000})
        False
    """
    known = DATASETS.get(name)
    if known is None:
        return True
    return all(counts.get(split, size) == size for split, size in known.counts.items())


def is_of_published_data(record: RunRecord) -> bool:
    """Whether a run was trained on the published data; an old record does not say, and passes.

    >>> is_of_published_data(RunRecord("a", {"data": "mnist"}, 0.0, {}, 1.0, {}, {"train": 20}))
    False
    """
    return has_published_size(str(record.configuration["data"]), record.data)


HUMAN_FILES = {
    "cifar10": ("cifar-n/cifar10n.npz", "cifar-n/CIFAR-10_human.pt"),
    "cifar100": ("cifar-n/cifar100n.npz", "cifar-n/CIFAR-100_human.pt"),
}
"""Where the human labels of a dataset may be below the data root, the first choice first."""


def find_human_labels(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    """The file of human labels of a dataset, below the data root.

    Args:
        name: `cifar10` or `cifar100`.
        root: The folder of the named datasets; else `LABELPROOF_DATA`, else the user's cache.

    Raises:
        FileNotFoundError: None of the known files is there.

    Example:
        >>> find_human_labels("cifar10", getfixture("tmp_path"))
        Traceback (most recent call last):
            ...
        FileNotFoundError: human labels of cifar10: expected cifar-n/cifar10n.npz or
        cifar-n/CIFAR-10_human.pt in ..., found neither; the publishers are at
        github.com/UCSC-REAL/cifar-10-100n
    """
    places = HUMAN_FILES.get(name, ())
    for place in places:
        if (file := data_root(root) / place).is_file():
            return file
    raise FileNotFoundError(
        f"human labels of {name}: expected {' or '.join(places)} in {data_root(root)}, found "
        "neither; the publishers are at github.com/UCSC-REAL/cifar-10-100n"
    )


def explain_other_size(dataset: Dataset) -> str:
    """What there is to say about data that are not the published ones; nothing about others.

    >>> from dataclasses import replace
    >>> from labelproof.data import load_digits
    >>> explain_other_size(load_digits())
    ''
    >>> print(explain_other_size(replace(load_digits(), name="mnist")))
    mnist has 1,347 training and 450 test images here, where 60,000 and 10,000 were published: what
    is trained on these is in no table or figure
    """
    here = sizes(dataset)
    if has_published_size(dataset.name, here):
        return ""
    there = DATASETS[dataset.name].counts
    return (
        f"{dataset.name} has {here['train']:,} training and {here.get('test', 0):,} test images "
        f"here, where {there['train']:,} and {there['test']:,} were published: what is trained on "
        "these is in no table or figure"
    )
