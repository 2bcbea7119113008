"""How data are read: which of their columns, and whose labels; for whoever reads them again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from labelproof.data.dataset import Dataset
from labelproof.data.labelled_files import OnError
from labelproof.data.loading import load_dataset
from labelproof.data.row_columns import dropped_columns

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """What was asked for beside the data's path or name.

    A run and an audit keep it, so that those who come later read the same.

    Attributes:
        label: The column of a table that holds the labels; without it, it is found.
        labels: The file of labels that stand in place of the data's own.
        drop: Columns that nothing is learned from.
        group: The column by which samples belong together.
        root: Where datasets are that have a name.

    Example:
        >>> reading = Reading(label="churned", drop=("comment", "id"))
        >>> reading.flags()
        ['--label', 'churned', '--drop', 'comment', '--drop', 'id']
        >>> Reading.of(reading.as_values()) == reading
        True
    """

    label: str | None = None
    labels: str | os.PathLike[str] | None = None
    drop: tuple[str, ...] = ()
    group: str | None = None
    root: str | os.PathLike[str] | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Reading:
        """What `as_values` or `options` gave, as a run or an audit of any version kept it."""
        return cls(
            label=kept.get("label"),
            labels=kept.get("labels"),
            drop=tuple(kept.get("drop") or ()),
            group=kept.get("group"),
            root=kept.get("data_root"),
        )

    def load(
        self,
        data: str | os.PathLike[str],
        *,
        on_error: OnError = "raise",
        features: bool = True,
    ) -> Dataset:
        """Read data so, as [`load_dataset`][labelproof.data.load_dataset] does."""
        return load_dataset(
            data,
            root=self.root,
            on_error=on_error,
            label=self.label,
            labels=self.labels,
            drop=self.drop,
            group=self.group,
            features=features,
        )

    def found_in(self, dataset: Dataset) -> Reading:
        """The same with columns as they are called in the data that were read."""
        return replace(self, drop=tuple(dropped_columns(dataset.columns)), group=dataset.group)

    def as_values(self) -> dict[str, Any]:
        """As a run keeps it: paths as they were given."""
        return {
            "label": self.label,
            "labels": None if self.labels is None else os.fspath(self.labels),
            "drop": list(self.drop),
            "group": self.group,
        }

    def options(self) -> dict[str, Any]:
        """As an audit keeps it, wherever the review is started from: whole paths."""
        whole = {"labels": _whole(self.labels), "data_root": _whole(self.root)}
        chosen = {name: value for name, value in self.as_values().items() if value}
        return {"label": self.label} | chosen | whole

    def flags(self) -> list[str]:
        """The flags with which another command reads the same data in the same way."""
        single = {
            "--label": self.label,
            "--labels": self.labels,
            "--group": self.group,
            "--data-root": self.root,
        }
        words = [word for flag, value in single.items() if value for word in (flag, str(value))]
        return words + [word for column in self.drop for word in ("--drop", column)]


def _whole(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.abspath(path)
