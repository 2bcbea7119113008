"""The file of a search: written after every run of it, and read to go on from there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelproof.training.files import write_text
from labelproof.tuning.ranking import choose_trial
from labelproof.tuning.trial import Trial
from labelproof.version import __version__

__all__ = ["OtherSearchError", "read_journal", "remove_journal", "write_journal"]

_FORMAT = 1


class OtherSearchError(ValueError):
    """A file holds a search of other data or another configuration."""


def write_journal(path: Path, trials: Sequence[Trial], about: Mapping[str, Any]) -> None:
    """Write all trials and the choice, whole or not at all.

    Args:
        path: The file.
        trials: All so far.
        about: What is the same for the whole search.

    Example:
        >>> file = getfixture("tmp_path") / "tuning.json"
        >>> about = {"configuration": {"epochs": 1}, "validation": {"rows": [9]}}
        >>> write_journal(file, [Trial(0, "ce", "start", rows=[9], epochs=1)], about)
        >>> [trial.loss for trial in read_journal(file, about)]
        ['ce']
    """
    chosen = choose_trial(trials)
    values = {
        "format": _FORMAT,
        "version": __version__,
        "about": dict(about),
        "choice": None if chosen is None else chosen.loss,
        "trials": [trial.as_values() for trial in trials],
    }
    write_text(path, json.dumps(values, indent=1) + "\n")


def read_journal(path: Path, about: Mapping[str, Any]) -> list[Trial]:
    """The trials of an earlier search, or none where there is no file.

    Args:
        path: The file.
        about: What is the same for the whole search; the file's must be the same.

    Raises:
        OtherSearchError: It holds a search of something else, or no search.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    try:
        values = json.loads(text)
        kept, found = values["format"], values["about"]
    except (ValueError, KeyError, TypeError):
        raise OtherSearchError(
            f"{path} is not the file of a search; choose another place for it"
        ) from None
    if kept != _FORMAT:
        raise OtherSearchError(
            f"{path} was written in another format ({kept}); choose another file"
        )
    wanted = json.loads(json.dumps(about))
    different = [name for name in wanted if found.get(name) != wanted[name]]
    if different:
        told = "; ".join(_difference(name, found.get(name), wanted[name]) for name in different)
        raise OtherSearchError(
            f"{path} holds a search of something else ({told}); choose another file with --output "
            "(file=), or start anew with --fresh"
        )
    rows, epochs = wanted["validation"]["rows"], wanted["configuration"]["epochs"]
    trials = [Trial.from_values(entry, rows=rows, epochs=epochs) for entry in values["trials"]]
    for trial in trials:
        trial.forget_begun()
    return trials


def remove_journal(path: Path) -> None:
    """Remove the file of a search, of whatever; any other file is refused.

    Raises:
        OtherSearchError: The file is not that of a search.
    """
    if not path.exists():
        return
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        known = {"format", "about", "trials"} <= set(values)
    except (ValueError, TypeError):
        known = False
    if not known:
        raise OtherSearchError(f"{path} is not the file of a search, and is left as it is")
    path.unlink()


def _difference(name: str, found: Any, wanted: Any) -> str:
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = [key for key in wanted if found.get(key) != wanted[key]]
        return "; ".join(f"{key}: {found.get(key)!r} there, {wanted[key]!r} here" for key in keys)
    return f"{name}: {found!r} there, {wanted!r} here"
