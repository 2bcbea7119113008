"""Published numbers by table, dataset, method and column: the paper's and later papers'."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import NamedTuple

__all__ = ["Published", "published"]


class Published(NamedTuple):
    """A cell of a table."""

    mean: float
    """Test accuracy in percent: of the last epoch, and for human labels of the best one."""
    std: float | None
    """Over three runs, where it is given."""


def published(table: str, dataset: str) -> dict[str, dict[str, Published]]:
    """One table for one dataset: for each method its cells, in the published order.

    What a later paper gives of a method in the table `beyond` stands beside the paper's own rows.

    Args:
        table: `symmetric`, `asymmetric`, `comparison`, `imbalance`, `webvision`, `beyond` or
            `human`.
        dataset: `mnist`, `cifar10`, `cifar100` or `webvision`.

    Example:
        >>> published("symmetric", "cifar10")["CE+SR"]["0.6"]
        Published(mean=78.18, std=0.36)
        >>> published("beyond", "cifar10")["CE+SR"]["sym-0.6"]
        Published(mean=78.18, std=0.36)
    """
    rows = _tables().get(table, {}).get(dataset, {})
    found = {
        method: {column: Published(*cell) for column, cell in cells.items()}
        for method, cells in rows.items()
    }
    if table == "beyond":
        for kind, short in (("symmetric", "sym"), ("asymmetric", "asym")):
            for method, cells in published(kind, dataset).items():
                own = {
                    f"{short}-{rate}" if float(rate) else "clean": cell
                    for rate, cell in cells.items()
                }
                found[method] = {**found.get(method, {}), **own}
    return found


@cache
def _tables() -> dict[str, dict[str, dict[str, dict[str, list[float]]]]]:
    text = resources.files("labelproof.experiments").joinpath("paper.json").read_text("utf-8")
    return json.loads(text)
