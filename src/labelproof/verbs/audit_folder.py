"""Keeping an audit: whose folder it is, the page, and what is said."""

from __future__ import annotations

from pathlib import Path

from labelproof.audit import Audit, Samples
from labelproof.audit.folder import INSIDE, PAGE, SETTINGS, remove_audit
from labelproof.report.audit import write_audit_page
from labelproof.training.run_folder import FolderInUseError, owning
from labelproof.verbs.audit_words import describe_audit, describe_own_audit
from labelproof.verbs.output_folder import refuse_foreign
from labelproof.verbs.progress import Reporter

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
    folder: Path, found: Audit, samples: Samples, *, fresh: bool, reporter: Reporter
) -> None:
    """Keep an audit for which nothing was trained, in place of an earlier one."""
    try:
        with owning(folder):
            if fresh:
                remove_audit(folder)
            found.write(folder)
            present(folder, found, samples, reporter)
    except FolderInUseError as error:
        raise ValueError(str(error)) from None


def keep_beside(run: Path, found: Audit, samples: Samples, reporter: Reporter) -> None:
    """Keep what a run says about its own labels in its folder, and say it.

    Args:
        run: The run's folder.
        found: What it says.
        samples: What is shown of it.
        reporter: Told of it.
    """
    folder = run / INSIDE
    with owning(folder):
        found.write(folder)
        _make_page(folder, found, samples, reporter)
    reporter.say(describe_own_audit(found, run))


def present(folder: Path, found: Audit, samples: Samples, reporter: Reporter) -> None:
    """Make the page of an audit that is kept, and say what was found."""
    _make_page(folder, found, samples, reporter)
    reporter.say(describe_audit(found, folder))


def _make_page(folder: Path, found: Audit, samples: Samples, reporter: Reporter) -> None:
    with reporter.working("Making the page"):
        write_audit_page(folder / PAGE, found, samples)
