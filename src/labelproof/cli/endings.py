"""How a command that trains ends: what is said, and its exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from labelproof.cli.exit_codes import DIVERGED, OUT_OF_MEMORY
from labelproof.training.metrics import DivergedError
from labelproof.training.runner import DeviceMemoryError
from labelproof.verbs.progress import Reporter
from labelproof.verbs.train import StoppedError

__all__ = ["ending"]


@contextmanager
def ending(reporter: Reporter) -> Iterator[None]:
    """Inside, training that is stopped, diverges or runs out of memory ends the program."""
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
