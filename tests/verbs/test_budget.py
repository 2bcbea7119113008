"""`fit` and `audit` on images on a CPU end in about the minutes that they are given."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from made_images import write_images
from trained import labelproof as command

import labelproof
from labelproof.data import load_digits
from labelproof.fitting.recipe import choose_recipe
from labelproof.training.configuration import Configuration
from labelproof.verbs import budget
from labelproof.verbs.budget import Pace
from labelproof.verbs.fit import FitPlan

COSTS = {"cnn8": 64.0, "cnn8(width=32)": 16.0, "cnn8(width=16)": 4.0, "cnn4(width=16)": 1.0}


def remake(more: dict[str, Any]) -> Configuration:
    return choose_recipe(load_digits(), **{"network": "cnn8", "epochs": 120} | more)


def chosen(minutes: float, *, fixed: bool = False) -> tuple[str, int, str]:
    """What is chosen where the smallest network needs a second for an epoch."""
    request: Any = SimpleNamespace(settings={"network": "cnn8"} if fixed else {})
    with patch.object(budget, "time_steps", lambda _, each: Pace(0.0, COSTS[each.network] / 1000)):
        configuration, said = budget.fit_into(minutes, request, remake({}), remake, examples=1000)
    return configuration.network, configuration.epochs, said


def test_the_widest_network_that_sees_the_data_often_enough() -> None:
    said = "Time: about 2 hours on this CPU, by its first steps"
    assert chosen(200) == ("cnn8", 120, said)
    network, epochs, said = chosen(60)
    assert (network, epochs) == ("cnn8", 40)
    assert "--minutes 160 would train cnn8 for 120 epochs" in said
    assert chosen(20)[:2] == ("cnn8(width=32)", 60)
    assert chosen(10)[:2] == ("cnn8(width=16)", 120)
    assert chosen(1)[:2] == ("cnn4(width=16)", 40)
    assert chosen(0.1)[:2] == ("cnn4(width=16)", 3)
    assert chosen(0.001)[:2] == ("cnn4(width=16)", 1)
    assert chosen(10, fixed=True)[:2] == ("cnn8", 5)


def test_images_end_soon_and_keep_a_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pace(_: object, chosen: Configuration) -> Pace:
        return Pace(0.0, COSTS[chosen.network] / 100)  # of a slow machine, whichever this is

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelproof.verbs.budget.time_steps", pace)
    names = [f"photos/{kind}/{number}.png" for kind in "ab" for number in range(20)]
    write_images(tmp_path, names, size=(32, 32))
    for verb, epochs, notes in (("fit", 120, "fit.json"), ("audit", 60, "settings.json")):
        short = (verb, "photos", "--device", "cpu", *(["--no-audit"] if verb == "fit" else []))
        monkeypatch.setattr("labelproof.verbs.budget.time_steps", pace)
        first = command(*short, "--minutes", "0.01")
        assert first.exit_code == 0, first.output
        asked = json.loads((tmp_path / f"photos-{verb}" / notes).read_text())["asked"]
        assert asked["minutes"] == 0.01
        assert asked["epochs"] < epochs
        assert f"would train cnn8 for {epochs} epochs" in first.output
        # The clock says something else by now; the choice is the folder's.
        monkeypatch.setattr("labelproof.verbs.budget.time_steps", lambda *_: Pace(0.0, 0.0))
        again = command(*short, "--minutes", "0.01")
        assert "Finished before" in again.output, again.output
        assert "--minutes 0.01" in str(command(*short, "--minutes", "5").exception)


def test_code_that_a_folder_names_is_not_chosen(tmp_path: Path) -> None:
    digits, folder = load_digits(), tmp_path / "run"
    folder.mkdir()
    asked = {"minutes": 10.0, "network": "evil:make", "augmentation": "none", "epochs": 1}
    text = json.dumps({"asked": asked, "loss": "ce", "given_up": []})
    (folder / "fit.json").write_text(text)
    plan = FitPlan(digits, output=folder, device="cpu")
    assert plan.configuration.network == "cnn4(width=12)"


def test_where_no_time_is_chosen_for_it_is_refused() -> None:
    cases: list[dict[str, Any]] = [{"epochs": 3}, {"minutes": 0.0}, {"minutes": -1}]
    for settings in cases:
        for verb in (labelproof.fit, labelproof.audit):
            with pytest.raises(ValueError, match="minutes"):
                verb(load_digits(), **{"minutes": 1, "device": "cpu"} | settings)
    rows = np.random.default_rng(0).normal(size=(60, 3))
    for verb in (labelproof.fit, labelproof.audit):
        with pytest.raises(ValueError, match="minutes"):
            verb((rows, np.arange(60) % 2), minutes=1)
