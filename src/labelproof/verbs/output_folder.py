"""Where a verb writes a folder: refused if it is someone else's."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

import torch.distributed

from labelproof.audit.folder import AUDIT, RUNS, SETTINGS
from labelproof.data.notices import few, readable
from labelproof.training.execution import Execution
from labelproof.training.files import is_litter
from labelproof.training.provenance import MODEL
from labelproof.training.record import RECORD
from labelproof.training.run_folder import (
    ATTEMPTS,
    LOCK,
    SEARCH,
    FolderInUseError,
    check_removable,
    owning,
    remove_run,
)

__all__ = ["TemporaryFolder", "choose_folder", "refuse_foreign", "take_over"]

_OURS = {
    "a run": {MODEL, RECORD, ATTEMPTS, SEARCH},
    "an audit": {AUDIT, SETTINGS, RUNS},
}
"""For each kind of folder, the files of which one is there from the beginning."""


class TemporaryFolder:
    """A folder that is removed with this object, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="labelproof-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def choose_folder(
    output: str | os.PathLike[str] | None, name: str
) -> tuple[Path, TemporaryFolder | None]:
    """The folder that was asked for; without one, a new one of some name within a temporary one."""
    if output is not None:
        return Path(output).expanduser(), None
    keeper = TemporaryFolder()
    return keeper.path / name, keeper


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
    if str(folder) == "-":
        raise ValueError(f"--output: expected a folder for {kind}, got -; nothing is printed there")
    if not folder.is_dir():
        return
    names = {entry.name for entry in folder.iterdir() if not is_litter(entry.name)} - {LOCK}
    if not names or names & _OURS[kind]:
        return
    others = [each for each, files in _OURS.items() if names & files]
    what = others[0] if others else few(sorted(names))
    raise ValueError(
        f"--output: expected a new or empty folder, got {readable(str(folder))}, which holds {what}"
    )


def take_over(folder: Path, execution: Execution, *, fresh: bool) -> None:
    """See that no one else trains in the folder, and remove what is there if that is asked for."""
    if execution.rank == 0:
        refuse_foreign(folder, kind="a run")
        if fresh:
            check_removable(folder)
        try:
            with owning(folder):
                if fresh:
                    remove_run(folder)
        except FolderInUseError as error:
            raise ValueError(str(error)) from None
    if execution.world_size > 1:
        # The others look for a checkpoint, and must not find one that is about to be removed.
        torch.distributed.barrier()
