"""Where a run's data are, seen from any working directory, and also after both were moved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from labelproof.data.published import is_known

__all__ = ["find_again", "note_place", "note_places", "places_of"]

_WHOLE, _FROM_RUN = "path", "from_run"
_RUNS = "labelproof-runs"
"""Where `labelproof train` keeps its runs, beside which the data may be."""


def note_place(path: str | os.PathLike[str], folder: Path) -> dict[str, str]:
    """Where data are, as a run's folder notes it: their whole path, and the way from the folder.

    Args:
        path: The data, seen from the working directory.
        folder: The run's.

    Example:
        >>> noted = note_place("/srv/data/cust.csv", Path("/srv/cust-fit"))
        >>> noted["path"], noted["from_run"]
        ('/srv/data/cust.csv', '../data/cust.csv')
    """
    whole = os.path.abspath(Path(path).expanduser())
    try:
        way = os.path.relpath(whole, os.path.realpath(folder))
        # With slashes, which every system takes: run and data may be moved to another one.
        return {_WHOLE: whole, _FROM_RUN: way.replace(os.sep, "/")}
    except ValueError:  # on another drive
        return {_WHOLE: whole}


def note_places(data: str, labels: Path | None, folder: Path) -> dict[str, dict[str, str]]:
    """Where what a run reads is, for whoever reads it again; a dataset's name is no place.

    Args:
        data: A path, or a dataset's name.
        labels: The file of labels that stand in place of the data's own.
        folder: The run's.

    >>> note_places("mnist", None, Path("run")), list(note_places("t.csv", None, Path("run")))
    ({}, ['data'])
    """
    places = {} if is_known(data) else {"data": note_place(data, folder)}
    return places if labels is None else places | {"labels": note_place(labels, folder)}


def places_of(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> list[str]:
    """Where data that a run was told of may be, as whole paths, the likeliest first.

    The way from the run's folder leads to the data wherever both were moved together. The working
    directory comes last: it may have other data of the same name.

    Args:
        path: The data, as the run was told of them.
        folder: The run's.
        noted: What `note_place` gave; an earlier version noted nothing.

    Example:
        >>> noted = {"path": "/srv/t.csv", "from_run": "../t.csv"}
        >>> places_of("t.csv", Path("/moved/t-fit"), noted)[:2]
        ['/moved/t.csv', '/srv/t.csv']
    """
    here = os.path.realpath(folder)
    told = os.path.expanduser(path)
    ways: list[str] = []
    if noted:
        ways += [os.path.join(here, noted[_FROM_RUN])] if _FROM_RUN in noted else []
        ways += [noted[_WHOLE]] if _WHOLE in noted else []
    beside = os.path.dirname(here)
    ways.append(os.path.join(beside, told))
    if os.path.basename(beside) == _RUNS:
        ways.append(os.path.join(os.path.dirname(beside), told))
    return list(dict.fromkeys(os.path.abspath(way) for way in (*ways, told)))


def find_again(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> str | None:
    """The first of `places_of` where there is something; `None` if there is nowhere anything.

    What is where it was said to be is called as it was said.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "t.csv").write_text("")
    >>> Path(find_again("t.csv", folder / "t-fit")).name, find_again("u.csv", folder / "u-fit")
    ('t.csv', None)
    """
    found = next((place for place in places_of(path, folder, noted) if os.path.exists(place)), None)
    return path if found == os.path.abspath(os.path.expanduser(path)) else found
