"""Several names in one argument: methods and columns of a table."""

from __future__ import annotations

import re

__all__ = ["split_names"]

_BETWEEN = re.compile(r"[\s,]+(?![^()]*\))")
"""Spaces and commas, but not those within the parentheses of a loss."""


def split_names(text: str | None) -> list[str]:
    """Names that are separated by spaces or commas.

    >>> split_names("CE, CE+SR gce(q=0.5, clamp=1e-7)")
    ['CE', 'CE+SR', 'gce(q=0.5, clamp=1e-7)']
    >>> split_names(None)
    []
    """
    return [name for name in _BETWEEN.split(text or "") if name]
