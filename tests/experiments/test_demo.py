from dataclasses import replace
from pathlib import Path

import pytest

from labelproof import parse_loss
from labelproof.experiments.demo import (
    BASES,
    SPARSE,
    DemoRun,
    finished,
    plan,
    rows,
    train,
    unfinished,
)
from labelproof.noise import parse_noise
from labelproof.training import Recipe, RunRecord


def make_plan(folder: Path, seeds: list[int], **changes: object) -> list[DemoRun]:
    recipe = Recipe(epochs=1)
    noise = parse_noise(str(changes.get("noise", "symmetric:0.4")))
    extra = ["gce(q=0.7)"] if changes.get("extra") else []
    return plan(noise, seeds=seeds, recipe=recipe, folder=folder, extra=extra)


def finish(run: DemoRun) -> RunRecord:
    steps = train(run)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def test_every_base_is_there_plain_and_with_the_same_regulariser(tmp_path: Path) -> None:
    runs = make_plan(tmp_path, [1, 2])
    assert len(runs) == 2 * 2 * len(BASES)
    for run in runs:
        assert run.loss.endswith(SPARSE) == run.method.endswith("+SR")
        parse_loss(run.loss)
    assert len({run.name for run in runs}) == len(runs)


def test_a_finished_run_is_not_done_again_unless_its_configuration_changed(tmp_path: Path) -> None:
    run = make_plan(tmp_path, [1])[0]
    assert unfinished([run]) == [run]
    record = finish(run)
    assert unfinished([run]) == []
    assert finished([run]) == [record]
    assert record.noise_rate == pytest.approx(0.4, abs=0.05)
    longer = replace(run, recipe=replace(run.recipe, learning_rate=0.02))
    assert longer.name == run.name
    assert unfinished([longer]) == [longer]


def test_the_same_run_gives_the_same_curve(tmp_path: Path) -> None:
    run = make_plan(tmp_path, [1])[1]
    first, again = finish(run), finish(run)
    for metric in set(first.curve) - {"seconds"}:
        assert first.curve[metric] == again.curve[metric]


def test_a_loss_of_the_users_own_becomes_a_row(tmp_path: Path) -> None:
    run = make_plan(tmp_path, [1], extra=True)[-1]
    assert run.name.startswith("gce-q-0.7-symmetric")
    assert [row.loss for row in rows([finish(run)])] == ["gce(q=0.7)"]


def test_rows_hold_mean_and_deviation_over_seeds() -> None:
    records = [
        RunRecord("r", {"method": "CE", "loss": "ce"}, 0.4, {"test_accuracy": [a]}, 1, {})
        for a in (70.0, 74.0)
    ]
    (row,) = rows(records)
    assert row.mean == 72
    assert row.std == pytest.approx(8**0.5)
    assert rows(records[:1])[0].std == 0
