"""A bench on data that are not those of before, or not the published ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_records import write_tiny_mnist
from trained import labelproof
from typer.testing import Result

from labelproof.cli.console import TIME_IS_UP
from labelproof.experiments.records import RecordStore
from labelproof.experiments.tables import make_table
from labelproof.training.provenance import OtherDataError


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("data")
    return write_tiny_mnist(folder / "few", train=20), write_tiny_mnist(folder / "more", train=400)


def bench(data: Path, folder: Path, *extra: str, epochs: int = 1) -> Result:
    return labelproof(
        *("bench", "symmetric", "--dataset", "mnist", "--columns", "0.4", "--methods", "mae"),
        *("--device", "cpu", "--data-root", data, "--records", folder / "records"),
        *("--runs", folder / "runs", "--epochs", str(epochs), *extra),
    )


def kept(folder: Path) -> dict[str, Any]:
    (path,) = (folder / "records").glob("*/*.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize("engine", ["local", "ray"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["fewer first", "more first"])
def test_a_run_never_goes_on_with_other_data(
    roots: tuple[Path, Path], tmp_path: Path, order: tuple[int, int], engine: str
) -> None:
    first, second = (roots[number] for number in order)
    begun = bench(first, tmp_path, "--minutes", "0.005", epochs=100_000)
    assert begun.exit_code == TIME_IS_UP, begun.output
    (folder,) = (tmp_path / "runs").iterdir()
    refused = bench(second, tmp_path, "--engine", engine, epochs=100_000)
    assert isinstance(refused.exception, OtherDataError)
    assert f"{folder} holds a run of other data" in str(refused.exception)
    assert "--runs" in str(refused.exception)
    assert not list((tmp_path / "records").glob("*/*.json"))


def test_a_record_says_what_it_was_trained_on_and_stands_for_that_alone(
    roots: tuple[Path, Path], tmp_path: Path
) -> None:
    few, more = roots
    done = bench(few, tmp_path)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("mnist has 20 training and 12 test images here, where 60,000") == 1
    record = kept(tmp_path)
    assert {name: record["data"][name] for name in ("train", "test")} == {"train": 20, "test": 12}
    assert len(record["data"]["fingerprint"]) == 16
    assert bench(few, tmp_path).output == "1 run, 1 with a record\n"
    listed = bench(more, tmp_path, "--dry-run").output
    assert "1 run, 0 with a record\n1 record of other data than these will be replaced\n" in listed
    nowhere = bench(tmp_path / "nowhere", tmp_path, "--dry-run")
    assert nowhere.exit_code == 0, nowhere.output
    again = bench(more, tmp_path)
    assert again.exit_code == 0, again.output
    assert kept(tmp_path)["data"]["train"] == 400


def test_what_was_trained_on_other_data_is_in_no_table_and_no_figure(
    roots: tuple[Path, Path], tmp_path: Path
) -> None:
    assert bench(roots[0], tmp_path).exit_code == 0
    (path,) = (tmp_path / "records").glob("*/*.json")
    values = kept(tmp_path)
    values["configuration"]["epochs"] = 50
    values["curve"] = {name: numbers * 50 for name, numbers in values["curve"].items()}
    path.write_text(json.dumps(values))
    chosen = ("--dataset", "mnist", "--methods", "mae", "--records", tmp_path / "records")
    table = labelproof("table", "symmetric", *chosen)
    assert "no records yet" in table.stdout
    assert "1 record in" in table.stderr
    assert "on data of another size than the published ones" in table.stderr
    summary = labelproof("table", "summary", "--records", tmp_path / "records")
    assert "1 record in" in summary.stderr
    drawn = labelproof("figure", "accuracy", *chosen, "--output", tmp_path / "a.svg")
    assert "left out" in drawn.stderr
    # A record of before there was such a note stays where it was.
    del values["data"]
    path.write_text(json.dumps(values))
    made = make_table(RecordStore(tmp_path / "records"), "symmetric", "mnist", methods=["MAE"])
    assert made["MAE", "0.4"].n == 1
    assert labelproof("table", "symmetric", *chosen).stderr == ""


@pytest.mark.parametrize(
    ("text", "runs"), [("1-3", 3), ("1-2,7", 3), ("5", 1), ("0-0", 1), ("2 - 4", 3)]
)
def test_seeds_can_be_a_range(text: str, runs: int, tmp_path: Path) -> None:
    listed = bench(tmp_path, tmp_path, "--dry-run", "--seeds", text)
    assert listed.output.startswith(f"{runs} run")
