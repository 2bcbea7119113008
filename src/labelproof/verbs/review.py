"""`labelproof.review`: decide about suspicious labels one by one in the browser."""

from __future__ import annotations

import os
import shlex
import webbrowser
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from labelproof.audit.folder import REVIEW, Audit, find_audit
from labelproof.audit.samples import open_samples
from labelproof.data.notices import count, notice, readable
from labelproof.ranges import within
from labelproof.report.audit_words import export_name, remark
from labelproof.review.decisions import COLUMNS, COLUMNS_WITH_ID, Decisions, Review, export_csv
from labelproof.review.serving import check_installed, serve
from labelproof.training.files import write_text
from labelproof.training.run_folder import owning
from labelproof.verbs.progress import Callback, Reporter, as_reporter, say


def review(
    folder: str | os.PathLike[str],
    *,
    port: int = 0,
    open_page: bool = True,
    data: str | None = None,
    export: str | os.PathLike[str] | None = None,
    progress: Reporter | Callback | bool | None = True,
) -> None:
    """Serve a review of an audit's suspects to this machine's browser, until Ctrl-C.

    Each decision is saved before the next sample is shown, and the same call resumes the review.

    Args:
        folder: The folder of an audit, or of a run with one.
        port: The port; 0 chooses a free one.
        open_page: Whether to open the page in a browser.
        data: The path of the data, if it moved since the audit.
        export: Instead of serving, write the decisions to this CSV file: `sample`, the `id`
            if the audit has ids, `given`, `label`, `decision`; `-` is stdout.
        progress: As for `labelproof.fit`; it also gets the address.

    Raises:
        FileNotFoundError: There is no audit, or the data are gone.
        FolderInUseError: Another process has the audit open.
        ImportError: The packages of the extra `review` are not installed.
    """
    reporter, folder = as_reporter(progress), Path(folder)
    within("port", port, 0, 65535)
    place = find_audit(folder)
    audit = Audit.read(place)
    if export is not None:
        _export(audit, place, None if str(export) == "-" else Path(export), reporter)
        return
    check_installed()
    with owning(place), Decisions(place / REVIEW) as decisions:
        with reporter.working("Reading the data"):
            try:
                samples = open_samples(audit if data is None else replace(audit, data=data))
            except FileNotFoundError as error:
                raise FileNotFoundError(f"{error}; --data says where the data are now") from None
            vanished = int((samples.audit.index < 0).sum()) if samples.kind != "unknown" else 0
            if vanished:
                notice(f"{count(vanished, 'sample')} changed or gone since the audit, not shown")
            if stale := Review(audit, decisions).stale_notice():
                notice(stale)
            if warning := remark("caution", audit):
                notice(warning)

        def announce(address: str) -> None:
            reporter.say(f"Review of {readable(audit.name)}: {address}")
            if "SSH_CONNECTION" in os.environ:
                number = urlsplit(address).port
                reporter.say(f"From your machine: ssh -L {number}:127.0.0.1:{number} THIS-HOST")
            elif open_page and reporter.console.is_terminal:
                webbrowser.open(address)
            reporter.say("Ctrl-C ends the review; every decision is saved at once.")

        serve(audit, samples, decisions, port=port, announce=announce)
        reporter.say(_end(Review(audit, decisions), folder, place))


def _export(audit: Audit, place: Path, file: Path | None, reporter: Reporter) -> None:
    """Write the decisions of a review as CSV to a file or stdout, and count them."""
    if not (place / REVIEW).exists():
        raise FileNotFoundError(f"{place}: holds no decisions; start with 'labelproof review'")
    if file is not None:
        _check_export(file)
    with Decisions(place / REVIEW) as decisions:
        text, standing = export_csv(audit, decisions), Review(audit, decisions)
    counts, left_out = standing.counts(), len(audit.left_out)
    if stale := standing.stale_notice():
        notice(stale)
    summary = (
        f"{count(len(audit.samples) + left_out, 'label')}, {counts.changed:,} changed, "
        f"{counts.unsure + left_out:,} left out as unsure, "
        f"{len(audit.samples) - counts.decided:,} not decided"
    )
    if file is None:
        print(text, end="")
        say(reporter.aside, f"standard output: {summary}")
    else:
        write_text(file, text)
        reporter.say(f"{file}: {summary}")


def _check_export(file: Path) -> None:
    """Refuse to overwrite anything but an earlier export: it may be the data themselves."""
    exported = False
    if file.is_file():
        with file.open("rb") as stream:
            header = stream.readline().strip()
        exported = header in [",".join(each).encode() for each in (COLUMNS, COLUMNS_WITH_ID)]
    other = file.suffix.lower() in (".gz", ".parquet", ".xlsx")
    if other or (file.exists() and not exported):
        raise ValueError(f"--export: expected a new CSV file or an earlier export, got {file}")


def _end(standing: Review, folder: Path, place: Path) -> str:
    counts = standing.counts()
    command = ["labelproof", "review", str(folder), "--export", export_name(standing.audit)]
    return (
        f"\n{counts.seen:,} of {count(counts.suspects, 'suspect')} decided; "
        f"{count(counts.decided, 'decision')} kept in {place / REVIEW} "
        f"({counts.changed:,} changed, {counts.unsure:,} unsure).\n"
        f"Export: {shlex.join(command)}"
    )
