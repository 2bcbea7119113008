"""The output of commands: lines, warnings, errors and exit codes."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from labelproof.verbs.progress import Reporter, say

DIVERGED, OUT_OF_MEMORY = 3, 4
TIME_IS_UP = 75
"""Try again later: the system's `EX_TEMPFAIL`."""


def tell(text: str, *, aside: bool = False) -> None:
    """Print a line on stdout, or aside on stderr."""
    say(Console(stderr=aside), text)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    say(Console(stderr=True), f"warning: {text}", style="yellow")


def show_page(page: Path, *, opened: bool) -> None:
    """Print the path of a page, and open it in the browser if requested and on a terminal."""
    shown = opened and Console().is_terminal and webbrowser.open(page.resolve().as_uri())
    tell(f"{'Opened' if shown else 'Page:'} {page}")


def for_flags(message: str) -> str:
    """Rewrite a message of the library for the command line: flags instead of arguments.

    >>> for_flags("fix them, or use on_error='skip'")
    'fix them, or use --skip-unreadable'
    """
    # A command has one of these flags: the other behaviour is its default.
    flag = "leave out --strict" if "--strict" in sys.argv else "use --skip-unreadable"
    return message.replace("use on_error='skip'", flag).replace(" (label=)", "")


def terminal(console: Console | None = None) -> Reporter:
    """A reporter that prints results on stdout, and what is aside on stderr."""
    return Reporter(console or Console(), aside=Console(stderr=True))


def carry_out(plan: Any, reporter: Reporter, *, dry_run: bool) -> None:
    """Run a plan, or print it for a dry run."""
    if dry_run:
        plan.preview()
        return
    with ending(reporter):
        plan.run()


@contextmanager
def ending(reporter: Reporter) -> Iterator[None]:
    """A context in which training that stops, diverges or runs out of memory sets the exit code."""
    from labelproof.training.metrics import DivergedError
    from labelproof.training.runner import DeviceMemoryError
    from labelproof.verbs.train import StoppedError

    try:
        yield
    except StoppedError as stopped:
        reporter.say(str(stopped))
        raise typer.Exit(stopped.exit_code) from None
    except (DivergedError, DeviceMemoryError) as error:
        if not reporter.console.quiet:
            typer.secho(f"error: {error}", fg="red", err=True)
        code = DIVERGED if isinstance(error, DivergedError) else OUT_OF_MEMORY
        raise typer.Exit(code) from None
