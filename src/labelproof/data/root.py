"""Where datasets are kept on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["ROOT_VARIABLE", "cache_folder", "data_root"]

ROOT_VARIABLE = "LABELPROOF_DATA"
"""The environment variable that names the folder."""


def data_root(given: str | os.PathLike[str] | None = None, *, platform: str = sys.platform) -> Path:
    """The folder of all datasets: the one given, or `LABELPROOF_DATA`, or the user's cache.

    Args:
        given: A folder; `None` to look further.
        platform: As in `sys.platform`, which decides where a user's cache is.

    Example:
        >>> data_root("datasets").name
        'datasets'
    """
    chosen = given or os.environ.get(ROOT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return cache_folder(platform) / "labelproof"


def cache_folder(platform: str = sys.platform) -> Path:
    """The folder where a user's programs keep what they can fetch again.

    >>> cache_folder("darwin").name
    'Caches'
    """
    if platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
