"""`kill -9` in the middle of fit, train, audit or tune: the same call resumes to the same end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import labelproof
from labelproof.training import Event

SMALL: Any = {"network": "mlp(hidden=8,depth=1)", "device": "cpu"}


def write_fruit(folder: Path) -> None:
    generator, kinds = np.random.default_rng(0), np.arange(90) % 2
    sizes = generator.normal(size=(90, 2)) + 2 * kinds[:, None]
    table = pd.DataFrame(sizes, columns=["width", "height"])
    table.assign(kind=np.array(["fig", "pear"])[kinds]).to_csv(folder / "fruit.csv", index=False)


def calls(here: Path, progress: Any = None) -> dict[str, Callable[[], Any]]:
    """Each verb, writing into a folder."""
    data, more = str(here / "fruit.csv"), {**SMALL, "epochs": 3, "progress": progress}
    digits = labelproof.Configuration("digits", network=SMALL["network"], epochs=3)
    return {
        "fit": lambda: labelproof.fit(data, "kind", output=here / "fit", **more).metrics,
        "train": lambda: (
            labelproof.train(
                digits, here / "train", device="cpu", checkpoint_seconds=0, progress=progress
            ).metrics
        ),
        "audit": lambda: (
            labelproof.audit(data, "kind", folds=2, output=here / "audit", **more).suspects
        ),
        "tune": lambda: (
            labelproof.tune(
                data, "kind", trials=2, folds=1, output=here / "tune.json", **more
            ).trials
        ),
    }


def kill_all(here: Path) -> None:
    """Do each call in a process of its own that kills itself after some epochs."""
    for name in calls(here):
        child = os.fork()
        if child == 0:
            epochs = []

            def kill(event: Event | str, name: str = name, epochs: list[Event] = epochs) -> None:
                if isinstance(event, Event) and event.kind == "epoch":
                    epochs.append(event)
                    if len(epochs) == (2 if name in ("fit", "train") else 4):
                        os.kill(os.getpid(), signal.SIGKILL)

            calls(here, kill)[name]()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, name


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_same_call_resumes_to_the_same_result(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        folder.mkdir()
        write_fruit(folder)
    # One process that has trained nothing forks them: threads do not survive a fork.
    subprocess.run([sys.executable, __file__, killed], check=True, timeout=600)
    started: list[int] = []

    def note(event: Event | str) -> None:
        if isinstance(event, Event) and event.kind == "started":
            started.append(event.value)

    for name, call in calls(killed, note).items():
        started.clear()
        found = call()
        pd.testing.assert_frame_equal(found, calls(whole)[name]())
        # Only the fold, or the trial, that was killed is trained again, and train goes on in it.
        assert started == {"fit": [0], "train": [1]}.get(name, [0]), name
    assert not (killed / "audit" / "folds").exists()
    weights = [labelproof.load_run(here / "train").network.state_dict() for here in (killed, whole)]
    for name, values in weights[0].items():
        assert torch.equal(values, weights[1][name]), name


if __name__ == "__main__":
    kill_all(Path(sys.argv[1]))
