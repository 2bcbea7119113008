"""Where an audit's data are, wherever the review is started from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelproof.data.catalogue import is_known, plain_name

__all__ = ["data_place", "reading_options"]


def data_place(data: str) -> str:
    """The whole path of data; a dataset's name as it is.

    >>> data_place("MNIST"), os.path.isabs(data_place("photos"))
    ('mnist', True)
    """
    return plain_name(data) if is_known(data) else os.path.abspath(Path(data).expanduser())


def reading_options(
    *,
    label: str | None,
    labels: str | Path | None,
    data_root: str | Path | None,
    drop: Sequence[str] = (),
    group: str | None = None,
) -> dict[str, Any]:
    """What is needed to read the data again, as an audit keeps it."""
    options = {"label": label, "labels": _absolute(labels), "data_root": _absolute(data_root)}
    chosen = {"drop": list(drop), "group": group}
    return options | {name: value for name, value in chosen.items() if value}


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else os.path.abspath(path)
