"""The program `labelproof`: where it begins, how it ends, and what if nobody reads its output.

A pipe whose reader has ended, a full disk and a closed stream are met where bytes leave the
program: rich and typer would each answer with an exit of their own.
"""

from __future__ import annotations

import errno
import gc
import os
import shutil
import signal
import sys
import threading
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

    Torch takes seconds: without a word, people think that nothing happens.
    """
    shown = words and sys.stdout.isatty() and os.getenv("TERM") != "dumb"
    if shown:
        # A name may hold anything; in a line of its own it can be wiped out.
        plain = "".join(letter if letter.isprintable() else "?" for letter in words)
        print(plain[: shutil.get_terminal_size().columns - 1], end="", flush=True)
    try:
        with _ended_by_ctrl_c(), _nothing_collected():
            yield
    finally:
        if shown:
            print("\r\x1b[2K", end="", flush=True)


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """End at once and without a word; nothing is begun yet that could be lost.

    An exception would not do: raised in the middle of an import, some library may take it for a
    failure of its own, and go on or say so at length.
    """
    before = signal.getsignal(signal.SIGINT)
    # Who ignores Ctrl-C, as a job in the background does, or has an answer to it, keeps that.
    if (
        before is not signal.default_int_handler
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, _frame: os._exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Load modules without looking for garbage among them, now or ever: a second of the start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


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
    `head` does, and else with an error that says what is wrong with standard output. A training
    goes on without its lines, after one on the error stream: who reads a log must not be able to
    end it. A loss of the error stream ends nothing.

    Raises:
        SystemExit: The reader of a result has ended.
        OSError: The result cannot be written.
    """
    output, errors = sys.stdout, sys.stderr
    if output is None:
        # For reading: what is printed below Python fails too, and reaches no file opened later.
        _open_nothing(_OUTPUT, os.O_RDONLY)
        sys.stdout = open(_OUTPUT, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stdout = cast(TextIO, _Stream(sys.stdout, goes_on=goes_on))
    if errors is not None:
        sys.stderr = cast(TextIO, _Stream(errors, goes_on=True))
    try:
        yield
    finally:
        try:
            # Now, since an error in the flush of the interpreter's own end would be a traceback.
            sys.stdout.flush()
            if errors is not None:
                sys.stderr.flush()
        finally:
            sys.stdout, sys.stderr = output, errors


def _open_nothing(number: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


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
            number = self.stream.fileno()
            # What is left in the buffer goes nowhere, and nothing fails again.
            _open_nothing(number, os.O_WRONLY)
            if number == _OUTPUT:
                self._tell(error)

    def _tell(self, error: OSError) -> None:
        reasons = {errno.EBADF: "is closed", errno.EPIPE: "was closed by its reader"}
        problem = f"stdout {reasons.get(error.errno or 0, f'failed ({error.strerror})')}"
        if self.goes_on:
            print(f"warning: {problem}; continuing without it", file=sys.stderr)
        elif error.errno == errno.EPIPE:
            raise SystemExit(READER_GONE)
        else:
            raise OSError(f"{problem}; nothing more can be printed") from error


if __name__ == "__main__":
    run()
