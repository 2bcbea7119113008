"""Where an audit's data are, wherever the review is started from."""

from __future__ import annotations

import os
from pathlib import Path

from labelproof.data.catalogue import is_known, plain_name

__all__ = ["data_place"]


def data_place(data: str) -> str:
    """The whole path of data; a dataset's name as it is.

    >>> data_place("MNIST"), os.path.isabs(data_place("photos"))
    ('mnist', True)
    """
    return plain_name(data) if is_known(data) else os.path.abspath(Path(data).expanduser())
