"""The commands of the program, each imported on demand.

Torch, scikit-learn and matplotlib take seconds to import, and no command needs them all: the list
of commands, the version and the error for a mistyped command need none of them.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from labelproof.cli.options import read_source, without_arguments
from labelproof.version import __version__

NAMES = (
    *("demo", "fit", "train", "tune", "audit", "evaluate", "review", "predict", "export"),
    *("compare", "bench", "table", "figure", "losses", "data"),
)
"""The commands in the order of the help, each a function in the file of its name or of `_FILES`."""

_FILES = {
    "compare": "table",
    **dict.fromkeys(("fit", "train", "tune", "audit", "review"), "verbs"),
    **dict.fromkeys(("evaluate", "predict", "export"), "run"),
}

_TRAINING = ("fit", "train", "tune", "audit")
"""Commands with the exit codes of training."""

EXIT_CODES = (
    "Exit codes: 0 finished; 2 invalid argument or data; 3 training diverged: the loss is NaN; "
    "4 the device has too little memory; 130 or 143 stopped by Ctrl-C or termination, and saved."
)
"""For the help of commands that train."""


@cache
def load_command(name: str) -> Any:
    """Import a command.

    >>> load_command("losses").name
    'losses'
    """
    module = importlib.import_module(f"labelproof.cli.{_FILES.get(name, name)}")
    if name == "data":
        inner = module.app
    else:
        inner = typer.Typer(add_completion=False)
        inner.command(epilog=EXIT_CODES if name in _TRAINING else None)(getattr(module, name))
    command = typer.main.get_command(inner)
    command.name = name
    return command


@cache
def describe_command(name: str) -> str:
    """The description of a command, read from its source without importing it.

    >>> describe_command("demo").splitlines()[0]
    'Train on digits with wrong labels, with and without sparse regularization.'
    """
    command = read_source(f"cli/{_FILES.get(name, name)}.py", name)
    return without_arguments(ast.get_docstring(command) or "")


class _Commands(TyperGroup):
    """Lists the commands without importing them."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name) for name in NAMES}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For the list of commands: a command with its description and nothing else."""
        return (
            TyperCommand(cmd_name, help=describe_command(cmd_name)) if cmd_name in NAMES else None
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is run."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in NAMES else command, rest


app = typer.Typer(
    name="labelproof",
    help="Train classifiers that stay right when their training labels are wrong.",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(requested: bool) -> None:
    if requested:
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
