"""The program `labelproof`: where it begins, and how it ends."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def run() -> None:
    """Entry point: a mistake of the user's is one line and exit code 2, not a traceback.

    Nor is Ctrl-C one, from here on: commands that can go on say so themselves, and else the
    exit code is 130.
    """
    try:
        with loading():
            # Here and not above: loading torch takes seconds, in which people change their minds.
            from labelproof.cli.commands import NAMES, app, load_command

            if len(sys.argv) > 1 and sys.argv[1] in NAMES:
                load_command(sys.argv[1])
        app()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        import typer

        from labelproof.cli.console import for_flags
        from labelproof.training.checkpoint import LaterFormatError

        if not isinstance(error, (ValueError, OSError, ImportError, LaterFormatError)):
            raise

        typer.secho(f"error: {for_flags(str(error))}", fg="red", err=True)
        sys.exit(2)


@contextmanager
def loading(words: str = "") -> Iterator[None]:
    """Inside, modules are imported; a terminal shows the words until they are.

    Torch takes seconds: without a word, people think that nothing happens. No garbage is looked for
    among modules, now or ever, which is a second of the start. Ctrl-C ends it at once and without a
    word, for nothing is begun yet; an exception in the middle of an import might be taken by some
    library for a failure of its own.
    """
    shown = words and sys.stdout.isatty()
    if shown:
        print(words, end="", flush=True)
    before = signal.getsignal(signal.SIGINT)
    # Who ignores Ctrl-C, as a job in the background does, or has an answer to it, keeps that.
    taken = before is signal.default_int_handler
    if taken:
        signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if taken:
            signal.signal(signal.SIGINT, before)
        if shown:
            print("\r\x1b[2K", end="", flush=True)
