"""The commands of the program, and which errors are mistakes of who uses it."""

from __future__ import annotations

from typing import Annotated

import typer

from labelproof.cli.audit import audit
from labelproof.cli.bench import bench
from labelproof.cli.data import app as data
from labelproof.cli.demo import demo
from labelproof.cli.evaluate import evaluate
from labelproof.cli.export import export
from labelproof.cli.figure import figure
from labelproof.cli.fit import fit
from labelproof.cli.losses import losses
from labelproof.cli.predict import predict
from labelproof.cli.review import review
from labelproof.cli.show import show
from labelproof.cli.table import table
from labelproof.cli.train import EXIT_CODES, train
from labelproof.cli.tune import tune
from labelproof.training.checkpoint import LaterFormatError
from labelproof.training.ownership import FolderInUseError
from labelproof.version import __version__

__all__ = ["MISTAKES", "app"]

MISTAKES = (ValueError, OSError, ImportError, FolderInUseError, LaterFormatError)
"""Errors that say in a line what is wrong with what was asked for."""

app = typer.Typer(
    name="labelproof",
    help="Train classifiers that stay right when their training labels are wrong.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command(epilog=EXIT_CODES)(fit)
app.command(epilog=EXIT_CODES)(train)
app.command(epilog=EXIT_CODES)(tune)
app.command(epilog=EXIT_CODES)(audit)
app.command()(evaluate)
app.command()(review)
app.command()(predict)
app.command()(export)
app.command()(bench)
app.command()(table)
app.command()(figure)
app.command()(losses)
data.command()(show)
app.add_typer(data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelproof {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options of the program itself."""
