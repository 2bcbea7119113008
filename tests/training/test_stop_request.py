from __future__ import annotations

import signal
import threading

import pytest

from labelproof.training import StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_becomes_a_wish_and_the_second_is_raised(number: signal.Signals) -> None:
    with StopRequest() as stop:
        assert not stop.wanted
        assert stop.exit_code == 0
        signal.raise_signal(number)
        assert stop.wanted
        assert stop.exit_code == 128 + number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert stop.exit_code == 128 + number


def test_what_handled_signals_before_does_so_after() -> None:
    def mine(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, mine)
    try:
        interrupt = signal.getsignal(signal.SIGINT)
        with StopRequest():
            assert signal.getsignal(signal.SIGTERM) is not mine
        assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGINT) is interrupt
        with pytest.raises(ArithmeticError), StopRequest():
            raise ArithmeticError
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_outside_the_main_thread_nothing_is_caught() -> None:
    handlers = []

    def work() -> None:
        with StopRequest() as stop:
            handlers.append((signal.getsignal(signal.SIGTERM), stop.wanted))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [(before, False)]


def test_time_that_is_over_is_a_wish_of_its_own() -> None:
    now = 5.0
    with StopRequest(2, clock=lambda: now) as stop:
        assert not stop.wanted
        now = 7.0
        assert stop.wanted
        assert stop.signal is None
        assert stop.exit_code == 0
