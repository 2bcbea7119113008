"""A run's folder runs no code that the caller does not name."""

import json
import sys
from pathlib import Path

import pytest
from trained import labelproof as command

import labelproof

FACTORY = """
from pathlib import Path
from torch import nn

Path(__file__).with_name("ran").touch()


def make(num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))
"""


def test_a_factory_is_imported_only_if_the_caller_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    run, ran = tmp_path / "run", tmp_path / "ran"
    chosen = labelproof.Configuration("digits", network="evil:make", epochs=1)
    labelproof.train(chosen, run, device="cpu")  # whoever trains with it has named it
    ran.unlink()
    del sys.modules["evil"]
    for verb in (
        ("predict", run, tmp_path / "new.npy"),
        ("evaluate", run),
        ("export", run, "--format", "torch-export"),
        ("audit", run),
    ):
        for more in ((), ("--network", "other:make")):
            refused = command(*verb, *more)
            assert isinstance(refused.exception, ValueError), verb
            assert "--network evil:make" in str(refused.exception)
    with pytest.raises(ValueError, match="network"):
        labelproof.load_run(run)
    assert not ran.exists()
    assert command("evaluate", run, "--network", "evil:make").exit_code == 0
    assert labelproof.load_run(run, network="evil:make").evaluate().n == 450
    audited = command("audit", run, "--network", "evil:make", "--device", "cpu")
    assert audited.exit_code == 0, audited.output
    assert ran.exists()


def test_a_planted_factory_does_not_reach_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    tiny = labelproof.Configuration("digits", network="mlp(hidden=8,depth=1)", epochs=1)
    run = labelproof.train(tiny, tmp_path / "run", device="cpu").folder
    model = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps({**model, "network": "evil:make"}))
    with pytest.raises(ValueError, match="evil:make"):
        labelproof.load_run(run, network="mlp(hidden=8,depth=1)")
    assert not (tmp_path / "ran").exists()
