"""Stop training between two steps after Ctrl-C, SIGTERM or a time limit."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class StopRequest:
    """A context that records SIGINT and SIGTERM instead of raising; a second signal raises.

    Outside the main thread it catches no signals.

    Args:
        seconds: Time limit after which to stop; `None` for no limit.
        clock: Gives the time in seconds.

    Attributes:
        end: When the time is over, as `clock` has it.

    Example:
        >>> with StopRequest() as stop:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     stop.wanted, stop.exit_code
        (True, 143)
    """

    def __init__(
        self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.signal: int | None = None
        self.clock = clock
        self.end = math.inf if seconds is None else clock() + seconds
        self._before: dict[int, object] = {}

    @property
    def wanted(self) -> bool:
        """Whether to stop at the next occasion."""
        return self.signal is not None or self.clock() >= self.end

    @property
    def exit_code(self) -> int:
        """What a program that was stopped by a signal exits with, by the custom of shells; or 0."""
        return 0 if self.signal is None else 128 + self.signal

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType]

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def interrupts(handler: Any) -> Iterator[None]:
    """Inside, Ctrl-C is handled so; `signal.SIG_IGN` holds for what is started there, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
