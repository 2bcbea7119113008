"""What becomes of a command when no one takes what it prints.

A pipe whose reader has ended, a full disk, and a stream that was closed before the program began
are met where bytes leave it: rich and typer would each answer with an exit of their own.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from labelproof.cli.exit_codes import READER_GONE

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["result_is_printed", "standard_output"]

_PRINTING = ("predict", "evaluate", "compare", "table", "losses", "data")
"""Commands whose result is what they print; the others leave theirs on the disk."""

_OUTPUT, _ERRORS = 1, 2


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

    Args:
        goes_on: Whether there is something to do that is worth it when no one takes the lines.

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
    """Bytes on their way out; where they get nowhere, that is told.

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
        problem = f"standard output: {_reason(error)}"
        if self.goes_on:
            self.over = True
            print(f"warning: {problem}; goes on without", file=sys.stderr)
        elif error.errno == errno.EPIPE:
            raise SystemExit(READER_GONE)
        else:
            raise OSError(f"{problem}; nothing more can be printed there") from error


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
        return "it is closed"
    if error.errno == errno.EPIPE:
        return "who read it has ended"
    return str(error.strerror)
