"""`labelproof review`: look at suspicious labels one by one, and decide."""

from __future__ import annotations

import contextlib
import os
import shlex
import webbrowser
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console

from labelproof.audit.folder import REVIEW, Audit, find_audit
from labelproof.audit.samples import Samples, open_samples
from labelproof.cli.lines import say, told, warn
from labelproof.cli.output_file import is_standard_output
from labelproof.data.notices import count, readable
from labelproof.report.audit_words import caution, export_name
from labelproof.review.earlier_export import refuse_loss
from labelproof.review.export import COLUMNS, export_csv
from labelproof.review.serving import check_installed, serve
from labelproof.review.standing import Review
from labelproof.review.store import Decisions
from labelproof.training.files import write_text
from labelproof.training.run_folder import FolderInUseError, owning

__all__ = ["review"]


def review(
    folder: Annotated[
        Path, typer.Argument(metavar="AUDIT|RUN", help="An audit's folder, or a run's with one.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to serve on; 0 takes a free one.")
    ] = 0,
    open_page: Annotated[
        bool,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser. Other users of this machine may then see its address "
            "among the programs that run, and with it open the review.",
        ),
    ] = True,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where the data are now, if they have been moved since the audit.",
            show_default="where they were",
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write what was decided to this CSV file, - for standard output, and serve "
            "nothing.",
            show_default="none",
        ),
    ] = None,
) -> None:
    """Look at the suspects of an audit in the browser, and decide with a key each.

    For example:

        labelproof review photos-audit

        labelproof review photos-audit --export reviewed.csv

    K keeps a label, A accepts the suggestion, C gives another class, U leaves the sample out of the
    training as unsure, Z takes the last decision back. Each decision is on the disk before the next
    sample is shown; Ctrl-C ends the review, and the same command goes on with it.

    The exported table has a line for every sample: sample, given, label, decision. The label of one
    that is left out as unsure is empty there.

    Only this machine's browser can reach it. From another machine, forward the port under the same
    number: ssh -L 8000:127.0.0.1:8000 HOST, and review with --port 8000 there.
    """
    console = Console()
    place = find_audit(folder)
    audit = Audit.read(place)
    if export is not None:
        _export(console, audit, place, export)
        return
    check_installed()
    with _alone(place), Decisions(place / REVIEW) as decisions:
        with told(), console.status("Reading the data"):
            samples = _open(audit if data is None else replace(audit, data=data))
        notice = Review(audit, decisions).stale_notice()
        vanished = int((samples.audit.index < 0).sum()) if samples.kind != "unknown" else 0
        if vanished:
            changed = count(vanished, "sample")
            say(console, f"{changed} changed or gone since the audit, not shown.", style="yellow")
        if notice:
            say(console, f"{notice}.", style="yellow")
        if warning := caution(audit):
            say(console, warning, style="yellow")

        def announce(address: str) -> None:
            say(console, f"Review of {readable(audit.name)}: {address}")
            if "SSH_CONNECTION" in os.environ:
                number = urlsplit(address).port
                say(console, f"From your machine: ssh -L {number}:127.0.0.1:{number} THIS-HOST")
            elif open_page and console.is_terminal:
                webbrowser.open(address)
            say(console, "Ctrl-C ends it; every decision is kept as it is taken.")

        serve(audit, samples, decisions, port=port, announce=announce)
        say(console, _end(Review(audit, decisions), folder, place))


def _open(audit: Audit) -> Samples:
    try:
        return open_samples(audit)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; --data says where the data are now") from None


def _end(review: Review, folder: Path, place: Path) -> str:
    counts = review.counts()
    name = export_name(review.audit)
    command = shlex.join(["labelproof", "review", str(folder), "--export", name])
    return (
        f"\n{counts.seen:,} of {count(counts.suspects, 'suspect')} decided; "
        f"{count(counts.decided, 'decision')} kept in {place / REVIEW} "
        f"({counts.changed:,} changed, {counts.unsure:,} unsure).\n"
        f"Export: {command}"
    )


def _check_export(file: Path) -> None:
    """Refuse to replace anything but an earlier export: it may be the data themselves."""
    if file.suffix.lower() == ".gz":
        raise ValueError(
            f"--export: expected a name such as reviewed.csv, got {file}; nothing is packed here"
        )
    if not file.exists():
        return
    header = ",".join(COLUMNS).encode()
    if file.is_file():
        with file.open("rb") as stream:
            if stream.readline().strip() == header:
                return
    raise ValueError(f"--export: {file} is there, and no earlier export; choose another name")


def _export(console: Console, audit: Audit, place: Path, file: Path) -> None:
    path = place / REVIEW
    if not path.exists():
        raise FileNotFoundError(f"{place}: nothing is decided there; 'labelproof review' does that")
    printed = is_standard_output(file)
    if not printed:
        _check_export(file)
    with Decisions(path) as decisions:
        history = decisions.history()
        if not history:
            raise ValueError(f"{path}: holds no decision; 'labelproof review' takes them")
        text = export_csv(audit, decisions)
        if not printed and file.exists():
            refuse_loss(file, text, {readable(decision.sample) for decision in history})
        if printed:
            typer.echo(text, nl=False)
        else:
            write_text(file, text)
        review = Review(audit, decisions)
    counts = review.counts()
    before = len(audit.left_out)
    if review.stale:
        warn(review.stale_notice())
    say(
        Console(stderr=True) if printed else console,
        f"{'standard output' if printed else file}: "
        f"{count(len(audit.samples) + before, 'label')}, {counts.changed:,} changed, "
        f"{counts.unsure + before:,} left out as unsure"
        f"{f' ({before:,} of them in an earlier review)' * bool(before)}, "
        f"{len(audit.samples) - counts.decided:,} not decided",
    )


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Be the only one at work on the audit: two would answer to two tokens about one file."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(owning(place))
        except FolderInUseError as error:
            raise FolderInUseError(
                f"{error.process} has {place} open for review, or is auditing it anew; end it "
                "first, or go on at the address it printed",
                error.process,
            ) from None
        yield
