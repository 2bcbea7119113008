"""The bench on a MNIST of twenty images: `--epochs` makes a rehearsal of what takes hours."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_records import fill_table, write_tiny_mnist
from small_runs import StopAfter
from trained import labelproof, refusal, succeed
from typer.testing import Result

from labelproof.cli.console import TIME_IS_UP
from labelproof.experiments.records import RecordStore
from labelproof.training.execution import StopRequest
from labelproof.training.provenance import OtherDataError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_mnist(tmp_path_factory.mktemp("data"))


def bench(data: Path, folder: Path, *extra: str, epochs: int | None = 1, code: int = 0) -> Result:
    rehearsal = [] if epochs is None else ["--epochs", str(epochs)]
    result = labelproof(
        *("bench", "symmetric", "--dataset", "mnist", "--columns", "0.4", "--device", "cpu"),
        *("--data-root", data, "--records", folder / "records", "--runs", folder / "runs"),
        *(*rehearsal, *extra),
    )
    assert result.exit_code == code, result.output
    return result


def records(folder: Path) -> dict[str, dict[str, Any]]:
    paths = (folder / "records").glob("*/*.json")
    return {path.name: json.loads(path.read_text()) for path in paths}


def test_what_has_no_record_is_trained_and_the_rest_is_not(data: Path, tmp_path: Path) -> None:
    first = bench(data, tmp_path, "--methods", "CE")
    assert "1 run, 0 with a record" in first.output
    (kept,) = records(tmp_path).values()
    assert kept["configuration"]["epochs"] == 1
    assert kept["configuration"]["precision"] == "float32"
    assert list((tmp_path / "runs").iterdir()) == []
    # A loss that is written in two ways, or named twice, is one run.
    second = bench(data, tmp_path, "--methods", "ce CE 1*ce mae MAE")
    assert "2 runs, 1 with a record" in second.output
    assert len(records(tmp_path)) == 2
    third = bench(data, tmp_path, "--methods", "CE mae")
    assert third.output == "2 runs, 2 with a record\n"


def test_a_dry_run_lists_and_writes_nothing(data: Path, tmp_path: Path) -> None:
    fill_table(RecordStore(tmp_path / "records"), "symmetric", "mnist", {("CE", "0.4"): [74.0]})
    result = bench(data, tmp_path, "--seeds", "1,2", "--dry-run", epochs=None)
    assert "18 runs, 1 with a record" in result.output
    lines = result.output.splitlines()[1:]
    assert len(lines) == 17
    assert lines[0].startswith("FL           0.4        mnist-symmetric-0.4-fl-s1-")
    assert not (tmp_path / "runs").exists()


def test_several_tables_are_one_bench_and_what_they_share_is_trained_once(tmp_path: Path) -> None:
    several = ["bench", "symmetric", "comparison", "sweep-tau", "--dataset", "cifar10", "--dry-run"]
    done = succeed(*several, "--records", tmp_path)
    # Of the comparison's 16 cells those of CE and CE+SR at symmetric noise are of the first table.
    assert f"{45 + 16 - 4 + 6} runs" in done.output
    assert done.output.index("PHuber-CE") < done.output.rindex("CE+SR        1 ")
    assert "webvision" in refusal(*several, "webvision", "--records", tmp_path)


def stop_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Let the minute of `--minutes 1` be over after so many steps, however fast the machine is."""

    def make(seconds: float | None) -> StopRequest:
        assert seconds == 60
        return StopAfter(steps)

    patch.setattr("labelproof.cli.bench.StopRequest", make)


def test_when_time_is_up_it_saves_and_the_same_command_comes_to_the_same(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("--methods", "CE CE+SR")
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    bench(data, whole, *chosen, epochs=3)
    with monkeypatch.context() as patch:
        stop_after(patch, steps=5)  # each run has three
        ended = bench(data, stopped, *chosen, "--minutes", "1", epochs=3, code=TIME_IS_UP)
    assert "Time is up: 1 run of 2 left" in ended.output
    (kept,) = (stopped / "records").glob("*/*.json")
    when = kept.stat().st_mtime_ns
    (folder,) = (stopped / "runs").iterdir()
    assert len((folder / "metrics.jsonl").read_text().splitlines()) in (1, 2)
    more = ("--methods", "CE CE+SR MAE", "--dry-run")
    first, second = bench(data, stopped, *more, epochs=3).output.splitlines()[1:]
    assert first.endswith(f"  started in {folder}")
    assert "begun" not in second
    again = bench(data, stopped, *chosen, epochs=3)
    assert "2 runs, 1 with a record" in again.output
    assert "resumes after epoch" in again.output
    assert kept.stat().st_mtime_ns == when
    found = records(stopped)
    assert len(found) == 2
    for name, record in records(whole).items():
        assert found[name]["curve"] == record["curve"]


def test_a_record_that_was_lost_is_taken_from_the_kept_run(data: Path, tmp_path: Path) -> None:
    chosen = ("--methods", "CE", "--keep-runs")
    bench(data, tmp_path, *chosen, epochs=2)
    assert len(list((tmp_path / "runs").iterdir())) == 1
    (path,) = (tmp_path / "records").glob("*/*.json")
    before = json.loads(path.read_text())
    path.unlink()
    again = bench(data, tmp_path, *chosen, epochs=2)
    assert "epoch 1 of 2" not in again.output
    assert json.loads(path.read_text())["curve"] == before["curve"]


def test_a_loss_that_breaks_stops_no_other_and_is_told(data: Path, tmp_path: Path) -> None:
    result = bench(data, tmp_path, "--methods", "1e38*ce CE", code=3)
    assert "training diverged" in result.output
    assert [record["configuration"]["loss"] for record in records(tmp_path).values()] == ["ce"]


@pytest.fixture(scope="module")
def more_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_mnist(tmp_path_factory.mktemp("more"), train=400)


def test_a_run_never_goes_on_with_other_data(
    data: Path, more_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, steps=2)
        bench(data, tmp_path, "--methods", "mae", "--minutes", "1", epochs=9, code=TIME_IS_UP)
    (folder,) = (tmp_path / "runs").iterdir()
    for engine in ("local", "ray"):
        command = ("--methods", "mae", "--engine", engine)
        refused = bench(more_data, tmp_path, *command, epochs=9, code=1)
        assert isinstance(refused.exception, OtherDataError)
        assert f"{folder} holds a run of other data" in str(refused.exception)
        assert "--runs" in str(refused.exception)
    assert records(tmp_path) == {}


def test_a_record_stands_for_its_data_alone(data: Path, more_data: Path, tmp_path: Path) -> None:
    mae = ("--methods", "mae")
    done = bench(data, tmp_path, *mae)
    assert done.stderr.count("mnist has 20 training and 12 test images here, where 60,000") == 1
    (record,) = records(tmp_path).values()
    assert (record["data"]["train"], record["data"]["test"]) == (20, 12)
    assert len(record["data"]["fingerprint"]) == 16
    assert bench(data, tmp_path, *mae).output == "1 run, 1 with a record\n"
    listed = bench(more_data, tmp_path, *mae, "--dry-run").output
    assert "1 run, 0 with a record\n" in listed
    bench(tmp_path / "nowhere", tmp_path, *mae, "--dry-run")
    bench(more_data, tmp_path, *mae)
    (record,) = records(tmp_path).values()
    assert record["data"]["train"] == 400
