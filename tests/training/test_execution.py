import os
import signal

import joblib
import pytest
import torch

from labelproof.training import StopRequest, choose_device, choose_execution
from labelproof.training.execution import TYPES, autocast


def test_the_fastest_device_is_taken_or_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert choose_device() == torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device() == torch.device("mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ValueError, match="device: expected auto, cpu on this machine, got 'cuda'"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert choose_device("cuda") == torch.device("cuda")
    assert choose_device("cuda:0") == torch.device("cuda:0")
    for name in ("cuda:1", "mps", "meta", "gpu", "", "cuda:x"):
        with pytest.raises(ValueError, match="device: expected auto, cpu, cuda, cuda:0 on"):
            choose_device(name)


def test_cuda_is_compiled_and_recorded_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for device, fast in (("cpu", False), ("cuda", True)):
        execution = choose_execution(device)
        assert (execution.compile, execution.record) == (fast, fast)
        assert (execution.rank, execution.world_size) == (0, 1)
        assert choose_execution(device, compile=not fast).compile is not fast
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    choose_execution("cpu")
    assert torch.get_num_threads() <= joblib.cpu_count(), "containers limit the number of cores"
    torch.set_num_threads(threads)
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "4", "the user's own number was overwritten"


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_matrices_are_multiplied_in_the_precision_asked_for() -> None:
    matrix = torch.eye(16)
    for precision, dtype in TYPES.items():
        with autocast(precision, matrix.device):
            assert (matrix @ matrix).dtype == dtype
            assert not torch.is_autocast_enabled("cpu") or not torch.is_autocast_cache_enabled()
        assert (matrix @ matrix).dtype == torch.float32


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


def test_what_handled_signals_before_does_so_after_and_time_is_a_wish_of_its_own() -> None:
    def mine(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, mine)
    try:
        interrupt = signal.getsignal(signal.SIGINT)
        with StopRequest():
            assert signal.getsignal(signal.SIGTERM) is not mine
        with pytest.raises(ArithmeticError), StopRequest():
            raise ArithmeticError
        assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGINT) is interrupt
    finally:
        signal.signal(signal.SIGTERM, before)
    with StopRequest(1000) as stop:
        assert not stop.wanted
        stop.end -= 1000
        assert (stop.wanted, stop.signal, stop.exit_code) == (True, None, 0)
