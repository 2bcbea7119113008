"""Where a command is told to write a folder: refused if it is someone else's."""

from __future__ import annotations

from pathlib import Path

from labelproof.audit.folder import AUDIT, RUNS, SETTINGS
from labelproof.cli.output_file import is_standard_output
from labelproof.data.notices import few, readable
from labelproof.training.description import FILE as MODEL
from labelproof.training.ownership import LOCK
from labelproof.training.record import RECORD
from labelproof.training.saved import ATTEMPTS, SEARCH

__all__ = ["refuse_foreign"]

_OURS = {
    "a run": {MODEL, RECORD, ATTEMPTS, SEARCH},
    "an audit": {AUDIT, SETTINGS, RUNS},
}
"""For each kind of folder, the files of which one is there from the beginning."""


def refuse_foreign(folder: Path, *, kind: str) -> None:
    """Refuse a folder with files that no command of this kind has written.

    Results among other files are hard to find and to remove, and a mistyped `--output` may be the
    folder of the data.

    Args:
        folder: Where is to be written; one that is empty, or not there, is right.
        kind: `a run` or `an audit`.

    Raises:
        ValueError: It holds something else, or is `-`, which is standard output elsewhere.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> refuse_foreign(folder, kind="a run")
        >>> _ = (folder / "holiday.jpg").write_text("")
        >>> refuse_foreign(folder, kind="a run")
        Traceback (most recent call last):
            ...
        ValueError: --output: expected a new or empty folder, got ..., which holds holiday.jpg
    """
    if is_standard_output(folder):
        raise ValueError(f"--output: expected a folder for {kind}, got -; nothing is printed there")
    if not folder.is_dir():
        return
    names = {entry.name for entry in folder.iterdir()} - {LOCK}
    if not names or names & _OURS[kind]:
        return
    others = [each for each, files in _OURS.items() if names & files]
    what = others[0] if others else few(sorted(names))
    raise ValueError(
        f"--output: expected a new or empty folder, got {readable(str(folder))}, which holds {what}"
    )
