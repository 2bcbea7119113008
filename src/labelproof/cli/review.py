"""`labelproof review`: look at suspicious labels one by one, and decide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import labelproof
from labelproof.cli.arguments import is_standard_output
from labelproof.cli.console import Terminal, say, told
from labelproof.verbs.review import export_review

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
    reporter = Terminal()
    with told():
        if export is not None and is_standard_output(export):
            text, said = export_review(folder)
            typer.echo(text, nl=False)
            say(reporter.aside, said)
        else:
            labelproof.review(
                folder,
                port=port,
                open_page=open_page,
                data=data,
                export=export,
                progress=reporter,
            )
