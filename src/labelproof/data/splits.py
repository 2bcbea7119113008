"""The names that people give to the parts of a dataset, and the three that are meant."""

from __future__ import annotations

__all__ = ["SPLITS", "split_name"]

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
"""For each split, how it is written."""


def split_name(text: str) -> str | None:
    """The split that a word means, or `None`.

    >>> split_name("Val"), split_name("training"), split_name("cats")
    ('validation', 'train', None)
    """
    word = text.strip().casefold()
    return next((split for split, words in SPLITS.items() if word in words), None)
