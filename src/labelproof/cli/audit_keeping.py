"""Keeping an audit: whose folder it is, the page, and what is said."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from labelproof.audit import Audit, Samples
from labelproof.audit.folder import INSIDE, PAGE, SETTINGS, remove_audit
from labelproof.cli.audit_words import describe_audit, describe_own_audit
from labelproof.cli.lines import say
from labelproof.cli.output_folder import refuse_foreign
from labelproof.report.audit import write_audit_page
from labelproof.training.ownership import FolderInUseError, owning

__all__ = ["keep_beside", "present", "refuse_trained", "replace_audit"]


def refuse_trained(folder: Path, *, fresh: bool) -> None:
    """Leave alone what took hours to train, and what is someone else's."""
    refuse_foreign(folder, kind="an audit")
    if not fresh and ((folder / SETTINGS).exists() or _is_trained(folder)):
        raise ValueError(
            f"{folder} holds an audit for which networks were trained; choose another folder with "
            "--output, or replace it with --fresh"
        )


def _is_trained(folder: Path) -> bool:
    """Whether an audit says of itself that networks were trained for it."""
    try:
        return Audit.read(folder).trained
    except (OSError, ValueError):
        return False


def replace_audit(
    console: Console, folder: Path, found: Audit, samples: Samples, *, fresh: bool
) -> None:
    """Keep an audit for which nothing was trained, in place of an earlier one."""
    try:
        with owning(folder):
            if fresh:
                remove_audit(folder)
            found.write(folder)
            present(console, folder, found, samples)
    except FolderInUseError as error:
        raise ValueError(str(error)) from None


def keep_beside(run: Path, found: Audit, samples: Samples, console: Console) -> str:
    """Keep what a run says about its own labels in its folder; what is said of it.

    Args:
        run: The run's folder.
        found: What it says.
        samples: What is shown of it.
        console: Where progress is shown.
    """
    folder = run / INSIDE
    with owning(folder):
        found.write(folder)
        _make_page(console, folder, found, samples)
    return describe_own_audit(found, run)


def present(console: Console, folder: Path, found: Audit, samples: Samples) -> None:
    """Make the page of an audit that is kept, and say what was found."""
    _make_page(console, folder, found, samples)
    say(console, describe_audit(found, folder))


def _make_page(console: Console, folder: Path, found: Audit, samples: Samples) -> None:
    with console.status("Making the page"):
        write_audit_page(folder / PAGE, found, samples)
