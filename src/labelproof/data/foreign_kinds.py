"""Images of kinds that are not read here, which would else be left out in silence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from labelproof.data.notices import count, few, notice

__all__ = ["FOREIGN", "foreign_kind", "report_foreign_kinds", "report_other_files"]

_PHOTOGRAPHS = frozenset(
    {
        *(".avif", ".heic", ".heif", ".jp2", ".jxl", ".psd"),
        *(".arw", ".cr2", ".cr3", ".dng", ".nef", ".orf", ".raf", ".rw2"),
    }
)
_SCANS = frozenset(
    {
        *(".dcm", ".dicom", ".ima", ".mha", ".mhd", ".nii", ".nii.gz", ".nrrd"),
        *(".czi", ".ims", ".lif", ".lsm", ".nd2", ".oib", ".oif", ".oir", ".vsi", ".zvi"),
        *(".bif", ".mrxs", ".ndpi", ".scn", ".svs"),
    }
)
"""Of medicine, of microscopes, and of slides: most have several planes, or more than 8 bits."""

FOREIGN = _PHOTOGRAPHS | _SCANS
"""Endings of images that have to be saved as another kind first, in lower case."""

_ADVICE = ((_PHOTOGRAPHS, "save as JPEG or PNG"), (_SCANS, "export as PNG or TIFF"))


def foreign_kind(name: str) -> str:
    """The ending of an image that is not read; empty for any other file.

    >>> foreign_kind("1.HEIC"), foreign_kind("scan.nii.gz"), foreign_kind("notes.txt")
    ('.heic', '.nii.gz', '')
    """
    stem, kind = os.path.splitext(name.lower())
    if kind == ".gz":
        kind = os.path.splitext(stem)[1] + kind
    return kind if kind in FOREIGN else ""


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
    kinds = Counter(foreign_kind(name) for name in names)
    for alike, advice in _ADVICE:
        foreign = {kind: number for kind, number in kinds.items() if kind in alike}
        if foreign:
            notice(
                f"{place}: {count(sum(foreign.values()), 'image')} of a kind that is not read "
                f"({', '.join(sorted(foreign))}) left out; {advice}"
            )


def report_other_files(place: str, names: Sequence[str]) -> None:
    """Warn of files that are not images of any kind.

    Args:
        place: Where they are.
        names: Names or paths of files that are not read; images of kinds that are not are passed
            over, since `report_foreign_kinds` has told of them.

    Warns:
        DataWarning: There are some; it names a few.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     report_other_files("photos", ["1.heic", "notes.txt", "Thumbs.db"])
        >>> print(caught[0].message)
        photos: 2 files left out, not images: notes.txt, Thumbs.db
    """
    rest = [name for name in names if not foreign_kind(name)]
    if rest:
        notice(f"{place}: {count(len(rest), 'file')} left out, not images: {few(rest)}")
