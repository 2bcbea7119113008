"""What a run that was fitted says about the labels it was trained on."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from labelproof.audit import Samples
from labelproof.audit.folder import AUDIT, INSIDE, PAGE, Audit, mend_suspects
from labelproof.cli.audit_keeping import keep_beside
from labelproof.cli.audit_run import ask_run
from labelproof.cli.lines import say
from labelproof.cli.saved_runs import open_run
from labelproof.data.dataset import Dataset
from labelproof.data.reading import Reading
from labelproof.training.record import RECORD

__all__ = ["audit_own", "kept_audit"]


def audit_own(
    folder: Path,
    device: str,
    dataset: Dataset,
    prepared: Dataset,
    data: str,
    reading: Reading,
    console: Console,
) -> None:
    """Ask the run that was trained which of its labels are wrong.

    Args:
        folder: The run's.
        device: Where its network computes.
        dataset: The data as they are.
        prepared: The same with its images at the size that is looked at.
        data: Where they are now; the run may have been told of another place.
        reading: How they were read.
        console: Where progress is shown.
    """
    run = open_run(folder, device)
    found = ask_run(run, dataset, prepared, data=data, reading=reading, console=console)
    say(console, keep_beside(folder, found, Samples.of(found, dataset), console))


def kept_audit(folder: Path) -> Audit | None:
    """What the finished run said of its labels, if all of it was written, and after the run."""
    files = [folder / RECORD, folder / INSIDE / AUDIT, folder / INSIDE / PAGE]
    try:
        # In the order in which they are written: the page may be of a run that was here before.
        times = [file.stat().st_mtime_ns for file in files]
        kept = Audit.read(folder / INSIDE) if times == sorted(times) else None
    except (OSError, ValueError):
        return None
    if kept is not None:
        mend_suspects(folder / INSIDE, kept)
    return kept
