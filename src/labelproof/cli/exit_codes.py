"""What the program's exit codes say."""

from __future__ import annotations

__all__ = ["DIVERGED", "EXIT_CODES", "OUT_OF_MEMORY", "READER_GONE", "TIME_IS_UP"]

DIVERGED, OUT_OF_MEMORY = 3, 4
TIME_IS_UP = 75
"""Try again later, as the system's own list of such codes has it (`EX_TEMPFAIL`)."""
READER_GONE = 141
"""Whoever read the result has ended, as shells have it of programs that a closed pipe ends."""

EXIT_CODES = (
    "Exit codes: 0 finished; 2 something given is wrong; 3 the loss was not a number any more; "
    "4 the device has too little memory; 130 or 143 stopped by Ctrl-C or termination, and saved."
)
"""For the help of commands that train."""
