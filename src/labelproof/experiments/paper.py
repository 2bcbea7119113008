"""The numbers that the paper published, by table, dataset, method and column."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["Published", "published"]


class Published(NamedTuple):
    """A cell of a table."""

    mean: float
    """Test accuracy of the last epoch, percent."""
    std: float | None
    """Over three runs, where the paper gives it."""


def published(table: str, dataset: str) -> dict[str, dict[str, Published]]:
    """One table for one dataset: for each method its cells, in the paper's order.

    Args:
        table: `symmetric`, `asymmetric`, `comparison`, `imbalance` or `webvision`.
        dataset: `mnist`, `cifar10`, `cifar100` or `webvision`.

    Example:
        >>> published("symmetric", "cifar10")["CE+SR"]["0.6"]
        Published(mean=78.18, std=0.36)
    """
    rows = _tables().get(table, {}).get(dataset, {})
    return {
        method: {column: Published(*cell) for column, cell in cells.items()}
        for method, cells in rows.items()
    }


@cache
def _tables() -> dict[str, dict[str, dict[str, dict[str, list[float]]]]]:
    text = resources.files("labelproof.experiments").joinpath("paper.json").read_text("utf-8")
    return json.loads(text)
