"""The program `labelproof`: where it begins, how it ends, and what if nobody reads its output.

A pipe whose reader has ended, a full disk and a closed stream are met where bytes leave the
program: rich and typer would each answer with an exit of their own.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

READER_GONE = 141
"""Stdout was closed by its reader, as shells report a program that a closed pipe ends."""

_PRINTING = ("predict", "evaluate", "compare", "table", "losses", "data")
"""Commands whose result is what they print; the others leave theirs on the disk."""

_OUTPUT = 1


def run() -> None:
    """Entry point: a mistake of the user's is one line and exit code 2, not a traceback.

    Nor is Ctrl-C one, from here on: commands that can go on say so themselves, and else the
    exit code is 130. Nor is a standard output that takes nothing more.
    """
    try:
        with loading():
            # Here and not above: loading torch takes seconds, in which people change their minds.
            from labelproof.cli.commands import NAMES, app, load_command

            if len(sys.argv) > 1 and sys.argv[1] in NAMES:
                load_command(sys.argv[1])
        with standard_output(goes_on=not result_is_printed(sys.argv[1:])):
            app()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        import typer

        from labelproof.cli.console import for_flags, is_mistake

        if not is_mistake(error):
            raise

        message = for_flags(str(error), command=next(iter(sys.argv[1:]), ""))
        typer.secho(f"error: {message}", fg="red", err=True)
        sys.exit(2)


@contextmanager
def loading(words: str = "") -> Iterator[None]:
    """Inside, modules are imported; a terminal shows what for, until they are.

    Torch takes seconds: without a word, people think that nothing happens. No garbage is looked for
    among modules, now or ever, which is a second of the start. Ctrl-C ends it at once and without a
    word, for nothing is begun yet; an exception in the middle of an import might be taken by some
    library for a failure of its own.
    """
    shown = words and sys.stdout.isatty() and os.getenv("TERM") != "dumb"
    if shown:
        # A name may hold anything; in a line of its own it can be wiped out.
        plain = "".join(letter if letter.isprintable() else "?" for letter in words)
        print(plain[: shutil.get_terminal_size().columns - 1], end="", flush=True)
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


def result_is_printed(words: Sequence[str]) -> bool:
    """Whether a command line is done for when its standard output is.

    >>> result_is_printed(["predict", "run", "photos"]), result_is_printed(["fit", "photos"])
    (True, False)
    >>> result_is_printed(["fit", "--help"]), result_is_printed(["review", "a", "--export", "-"])
    (True, True)
    """
    command = next(iter(words), "")
    if command in _PRINTING or command.startswith("-") or not command:
        return True
    return not {"--help", "--dry-run", "-"}.isdisjoint(words)


@contextmanager
def standard_output(*, goes_on: bool) -> Iterator[None]:
    """Inside, a loss of the standard streams ends the program, or does not, as it should.

    Who prints a result ends: quietly with exit code 141 where the reader of a pipe has ended, as
    `head` does, and else with the system's error. A training goes on without its lines, after one
    on stderr: who reads a log must not be able to end it. A loss of stderr ends nothing.

    Raises:
        SystemExit: The reader of a result has ended.
        OSError: The result cannot be written.
    """
    before = sys.stdout, sys.stderr
    # Streams that were closed lead nowhere, and no file that is opened later gets their numbers.
    output, errors = (each or open(os.devnull, "w", encoding="utf-8") for each in before)  # noqa: SIM115
    sys.stdout = cast(TextIO, _Stream(output, goes_on=goes_on))
    sys.stderr = cast(TextIO, _Stream(errors, goes_on=True))
    try:
        yield
    finally:
        try:
            # Now, since an error in the flush of the interpreter's own end would be a traceback.
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            sys.stdout, sys.stderr = before


class _Stream:
    """A standard stream whose loss ends a command that prints its result, and no other."""

    def __init__(self, stream: Any, *, goes_on: bool):
        self.stream, self.goes_on = stream, goes_on

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        return self._watch(self.stream.write, text)

    def flush(self) -> None:
        self._watch(self.stream.flush)

    def _watch(self, action: Callable[..., Any], *text: str) -> Any:
        try:
            return action(*text)
        except OSError as error:
            # What is left in the buffer goes nowhere, and nothing fails again.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)
            if not self.goes_on and isinstance(error, BrokenPipeError):
                raise SystemExit(READER_GONE) from None
            if not self.goes_on:
                raise
            if self.stream.fileno() == _OUTPUT:
                print(f"warning: stdout: {error.strerror}; continuing without it", file=sys.stderr)
