"""A bench on data that are not those of before, or not the published ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_records import write_tiny_mnist
from trained import labelproof
from typer.testing import Result

from labelproof.cli.console import TIME_IS_UP
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
def test_a_run_never_goes_on_with_other_data(
    roots: tuple[Path, Path], tmp_path: Path, engine: str
) -> None:
    first, second = roots
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


@pytest.mark.parametrize(
    ("text", "runs"), [("1-3", 3), ("1-2,7", 3), ("5", 1), ("0-0", 1), ("2 - 4", 3)]
)
def test_seeds_can_be_a_range(text: str, runs: int, tmp_path: Path) -> None:
    listed = bench(tmp_path, tmp_path, "--dry-run", "--seeds", text)
    assert listed.output.startswith(f"{runs} run")
