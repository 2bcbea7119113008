"""The program `labelproof`: where it begins, how it ends, and what if nobody reads its output.

A pipe whose reader has ended, a full disk and a closed stream are met where bytes leave the
program: rich and typer would each answer with an exit of their own.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["READER_GONE", "loading", "result_is_printed", "run", "standard_output"]

READER_GONE = 141
"""Stdout was closed by its reader, as shells report a program that a closed pipe ends."""

_PRINTING = ("predict", "evaluate", "compare", "table", "losses", "data")
"""Commands whose result is what they print; the others leave theirs on the disk."""

_OUTPUT, _ERRORS = 1, 2


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
    shown = bool(words) and _is_terminal(sys.stdout)
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


def _is_terminal(stream: object) -> bool:
    return isinstance(stream, io.TextIOBase) and stream.isatty() and os.getenv("TERM") != "dumb"


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
    watched: list[_Stream] = []
    if output is None:
        _close_for_good()
        watched.append(_Stream(_Watched(_OUTPUT, goes_on=goes_on), None))
        sys.stdout = watched[-1]
    # Whatever else someone has put in their place is theirs to deal with.
    elif output is sys.__stdout__ and _takes_bytes(output):
        watched.append(_Stream(_Watched(_OUTPUT, goes_on=goes_on), output))
        sys.stdout = watched[-1]
    if errors is sys.__stderr__ and _takes_bytes(errors):
        watched.append(_Stream(_Watched(_ERRORS, goes_on=True), errors))
        sys.stderr = watched[-1]
    try:
        yield
    finally:
        try:
            # Now, since an error in the flush of the interpreter's own end would be a traceback.
            for stream in watched:
                stream.flush()
        finally:
            for stream in watched:
                stream.watched.over = True
            sys.stdout, sys.stderr = output, errors


def _takes_bytes(stream: object) -> TypeGuard[io.TextIOWrapper]:
    if not isinstance(stream, io.TextIOWrapper):
        return False
    return not (sys.platform == "win32" and stream.isatty())  # a console there takes characters


def _close_for_good() -> None:
    """Keep the number of the closed stream from the next file that is opened.

    What is printed below Python would go into that. For reading: to write there is an error.
    """
    unwritable = os.open(os.devnull, os.O_RDONLY)
    if unwritable != _OUTPUT:
        os.dup2(unwritable, _OUTPUT)
        os.close(unwritable)


class _Watched(io.FileIO):
    """A byte stream that reports when it can no longer be written.

    Attributes:
        over: Whether nothing is to be said of it any more.
    """

    def __init__(self, number: int, *, goes_on: bool):
        super().__init__(number, "wb", closefd=False)
        self.goes_on = goes_on
        self.over = False

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        # Nothing is written to find out what a stream takes, and no one is asked for it.
        if size:
            try:
                return super().write(data)
            except OSError as error:
                if not self.over:
                    self._tell(error)
        return size

    def _tell(self, error: OSError) -> None:
        if self.fileno() == _ERRORS:
            return
        problem = f"stdout {_reason(error)}"
        if self.goes_on:
            self.over = True
            print(f"warning: {problem}; continuing without it", file=sys.stderr)
        elif error.errno == errno.EPIPE:
            raise SystemExit(READER_GONE)
        else:
            raise OSError(f"{problem}; nothing more can be printed") from error


class _Stream(io.TextIOWrapper):
    """Text as another stream takes it, or, for a closed one, at once."""

    def __init__(self, watched: _Watched, like: io.TextIOWrapper | None):
        at_once = like is None or like.write_through
        if like is not None:
            like.flush()
        super().__init__(
            # The interpreter too has no buffer between where nothing is to wait.
            watched if at_once else io.BufferedWriter(watched),  # pyright: ignore[reportArgumentType]
            encoding="utf-8" if like is None else like.encoding,
            errors=None if like is None else like.errors,
            line_buffering=like is not None and like.line_buffering,
            write_through=at_once,
        )
        self.watched = watched


def _reason(error: OSError) -> str:
    if error.errno == errno.EBADF:
        return "is closed"
    if error.errno == errno.EPIPE:
        return "was closed by its reader"
    return f"failed ({error.strerror})"


if __name__ == "__main__":
    run()
