from dataclasses import replace
from pathlib import Path

import pytest

from labelproof import format_loss, parse_loss
from labelproof.experiments import demo
from labelproof.training import Job, RunRecord


def make_plan(folder: Path, seeds: list[int], extra: tuple[str, ...] = ()) -> dict[Job, str]:
    return demo.plan(replace(demo.SETTING, epochs=1), seeds=seeds, folder=folder, extra=extra)


def test_every_base_is_there_plain_and_with_the_same_regulariser(tmp_path: Path) -> None:
    runs = make_plan(tmp_path, [1, 2])
    assert len(runs) == 2 * 2 * len(demo.BASES)
    (sparse,) = {run.configuration.loss.partition("+")[2] for run in runs} - {""}
    assert format_loss(parse_loss("ce+" + demo.SPARSE)) == f"ce+{sparse}"
    for run, method in runs.items():
        assert run.configuration.loss.endswith(sparse) == method.endswith("+SR")
    assert len({run.folder for run in runs}) == len(runs)
    setting = replace(demo.SETTING, noise="pair:0.2", epochs=3)
    for run in demo.plan(setting, seeds=[4, 5], folder=tmp_path):
        assert set(run.configuration.differences(setting)) <= {"loss", "seed"}
    runs = make_plan(tmp_path, [1], extra=("CE", "mae", " MAE ", "fl(gamma=0.50)"))
    assert list(runs.values())[-2:] == ["GCE+SR", "mae"]


def unfinished(*runs: Job) -> list[Job]:
    done = {result.job for result in demo.finished(dict.fromkeys(runs, ""))}
    return [run for run in runs if run not in done]


def test_a_finished_run_is_not_done_again_unless_its_configuration_changed(tmp_path: Path) -> None:
    runs = make_plan(tmp_path, [1], extra=("gce( q=.7 )",))
    *_, run = runs
    assert unfinished(run) == [run]
    _, record = demo.train(run)
    assert isinstance(record, RunRecord)
    (result,) = demo.finished(runs)
    # A loss of the user's own becomes a row.
    (row,) = demo.rows([result])
    assert (row.method, row.loss) == ("gce( q=.7 )", "gce(q=0.7)")
    assert result.job == run
    assert result.record.as_json() == record.as_json()
    assert result.record.name == run.folder.name
    assert record.noise_rate == pytest.approx(0.4, abs=0.05)
    changed = replace(run.configuration, learning_rate=0.02)
    more = demo.plan(changed, seeds=[1], folder=tmp_path, extra=(result.method,))
    *_, (other, method) = more.items()
    assert method == result.method
    assert unfinished(run, other) == [other]
    demo.discard([run, other])
    assert unfinished(run) == [run]
    assert list(tmp_path.iterdir()) == []


def test_rows_hold_mean_and_deviation_over_seeds(tmp_path: Path) -> None:
    results = [
        demo.Result("CE", next(iter(make_plan(tmp_path, [seed]))), record)
        for seed, accuracy in ((1, 70.0), (2, 74.0))
        for record in [RunRecord("r", {}, 0.4, {"test_accuracy": [accuracy]}, 1, {})]
    ]
    assert demo.rows(results) == [("CE", "ce", 72, pytest.approx(8**0.5), 2, None)]
    assert demo.rows(results[:1]) == [("CE", "ce", 70, None, 1, None)]
