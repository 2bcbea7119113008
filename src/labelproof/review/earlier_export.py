"""What an export that is there already says, before another one takes its place."""

from __future__ import annotations

import csv
import io
from collections.abc import Set
from pathlib import Path

from labelproof.data.notices import count, few

__all__ = ["refuse_loss"]


def refuse_loss(file: Path, text: str, decided: Set[str]) -> None:
    r"""Refuse to replace an export whose corrections the new one does not know.

    Two reviews of the same data, one after the other or of two audits, may be written to one file.
    Whoever replaces the one by the other takes back what was decided there.

    Args:
        file: The export that is there.
        text: What would take its place.
        decided: Samples that this review has decided about at any time: of these it may change its
            mind.

    Raises:
        ValueError: There are labels in it that this review knows nothing about.

    Example:
        >>> file = getfixture("tmp_path") / "reviewed.csv"
        >>> _ = file.write_text("sample,given,label,decision\n1.jpg,cat,dog,accept\n")
        >>> new = "sample,given,label,decision\n1.jpg,cat,cat,\n"
        >>> refuse_loss(file, new, {"1.jpg"})
        >>> refuse_loss(file, new, set())
        Traceback (most recent call last):
            ...
        ValueError: --export: ...reviewed.csv has 1 label that another review decided, such as ...
    """
    labels = {row["sample"]: row["label"] for row in csv.DictReader(io.StringIO(text))}
    with file.open(encoding="utf-8", newline="") as stream:
        lost = [
            f"{row['sample']} ({row['label'] or 'left out'}, here {labels[row['sample']]})"
            for row in csv.DictReader(stream)
            if row["decision"]
            and row["sample"] not in decided
            and labels.get(row["sample"], row["label"]) != row["label"]
        ]
    if lost:
        raise ValueError(
            f"--export: {file} has {count(len(lost), 'label')} that another review decided, such "
            f"as {few(lost, shown=2)}, and that this one would take back; choose another name"
        )
