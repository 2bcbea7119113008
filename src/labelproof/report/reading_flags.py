"""How data are read, as flags that the next command has to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["reading_flags"]


def reading_flags(
    *,
    label: str | None = None,
    labels: str | Path | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    data_root: str | Path | None = None,
) -> list[str]:
    """The flags with which another command reads the same data in the same way.

    Args:
        label: The column with the labels.
        labels: The file of labels that stand in place of the data's own.
        drop: Columns that nothing is learned from.
        group: The column by which samples belong together.
        data_root: Where datasets are that have a name.

    Example:
        >>> reading_flags(label="churned", drop=["comment", "id"])
        ['--label', 'churned', '--drop', 'comment', '--drop', 'id']
    """
    single = {"--label": label, "--labels": labels, "--group": group, "--data-root": data_root}
    words = [word for flag, value in single.items() if value for word in (flag, str(value))]
    return words + [word for column in drop for word in ("--drop", column)]
