"""The entry point of the program `labelproof`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def run() -> None:
    """Entry point: an error of the user is one line and exit code 2, not a traceback.

    Ctrl-C gives no traceback either: the exit code is 130. Commands that can resume say so.
    """
    try:
        with loading():
            # Not above: loading torch takes seconds, in which users may press Ctrl-C.
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
def show_warnings() -> Iterator[None]:
    """A context in which warnings are printed on stderr as they come, without their source code."""

    def show(message: Warning | str, *_: object) -> None:
        from labelproof.cli.console import for_flags, warn

        warn(for_flags(str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


@contextmanager
def loading(words: str = "") -> Iterator[None]:
    """A context for imports; a terminal shows `words` until they are done.

    Importing torch takes seconds, in which a blank terminal looks stuck. Garbage collection skips
    the imported modules, now and later, which saves a second. Ctrl-C exits at once and silently,
    since nothing has started yet; raised during an import, an exception might be caught by a
    library as a failure of its own.
    """
    shown = words and sys.stdout.isatty()
    if shown:
        print(words, end="", flush=True)
    before = signal.getsignal(signal.SIGINT)
    # Keep a handler that is not Python's default, such as that of a background job.
    replaced = before is signal.default_int_handler
    if replaced:
        signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if replaced:
            signal.signal(signal.SIGINT, before)
        if shown:
            print("\r\x1b[2K", end="", flush=True)
