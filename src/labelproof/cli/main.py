"""The program `labelproof`: where it begins, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from labelproof.cli.standard_output import result_is_printed, standard_output

__all__ = ["run"]


def run() -> None:
    """Entry point: a mistake of the user's is one line and exit code 2, not a traceback.

    Nor is Ctrl-C one, from here on: commands that can go on say so themselves, and else the
    exit code is 130. Nor is a standard output that takes nothing more.
    """
    try:
        with _ended_by_ctrl_c():
            # Here and not above: loading torch takes seconds, in which people change their minds.
            from labelproof.cli.commands import NAMES, app, load_command

            if len(sys.argv) > 1 and sys.argv[1] in NAMES:
                load_command(sys.argv[1])
        with standard_output(goes_on=not result_is_printed(sys.argv[1:])):
            app()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        from labelproof.cli.lines import for_flags
        from labelproof.cli.mistakes import MISTAKES

        if not isinstance(error, MISTAKES):
            raise
        import typer

        message = for_flags(str(error), command=next(iter(sys.argv[1:]), ""))
        typer.secho(f"error: {message}", fg="red", err=True)
        sys.exit(2)


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


if __name__ == "__main__":
    run()
