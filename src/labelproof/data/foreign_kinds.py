"""Images of kinds that are not read here, which would else be left out in silence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from labelproof.data.notices import count, notice

__all__ = ["FOREIGN", "report_foreign_kinds"]

FOREIGN = frozenset({".avif", ".cr2", ".dng", ".heic", ".heif", ".jp2", ".jxl", ".nef", ".psd"})
"""Endings of images that have to be saved as another kind first, in lower case."""


def report_foreign_kinds(place: str, names: Iterable[str]) -> None:
    """Warn of images among some files that are of a kind which is not read.

    Args:
        place: Where they are.
        names: Names or paths of any files; all but such images are passed over.

    Warns:
        DataWarning: There are some; it says how many, and of which kinds.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     report_foreign_kinds("photos", ["1.heic", "2.CR2", "3.jpg", "notes.txt"])
        >>> print(caught[0].message)
        photos: 2 images of a kind that is not read (.cr2, .heic) left out; save as JPEG or PNG
    """
    kinds = Counter(os.path.splitext(name)[1].lower() for name in names)
    foreign = {kind: number for kind, number in kinds.items() if kind in FOREIGN}
    if foreign:
        notice(
            f"{place}: {count(sum(foreign.values()), 'image')} of a kind that is not read "
            f"({', '.join(sorted(foreign))}) left out; save as JPEG or PNG"
        )
