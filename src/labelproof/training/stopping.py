"""Ctrl-C and termination as a wish that is granted between two steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

__all__ = ["StopRequest"]


class StopRequest:
    """Inside the block, SIGINT and SIGTERM are noted instead of raised; a second one raises.

    Where the block is not in the main thread, nothing is caught and `wanted` stays false.

    Example:
        >>> with StopRequest() as stop:
        ...     signal.raise_signal(signal.SIGTERM)
        ...     stop.wanted, stop.exit_code
        (True, 143)
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    @property
    def wanted(self) -> bool:
        """Whether to stop at the next occasion."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """What a program that was stopped so exits with, by the custom of shells."""
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
