"""The tables in the docs are those of the numbers that were measured."""

import importlib.util
import json
import shutil
import statistics
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("losses-*.json"))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the module they are in
    spec.loader.exec_module(module)
    return module


def test_there_are_numbers() -> None:
    assert [path.stem for path in RESULTS] == ["losses-cpu", "losses-h200"]


@pytest.mark.parametrize("numbers", RESULTS, ids=lambda path: path.stem)
def test_the_table_is_the_numbers(numbers: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(numbers, tmp_path))
    load("losses").write_table(copy)
    assert copy.with_suffix(".md").read_text() == numbers.with_suffix(".md").read_text()


SPEED = sorted((ROOT / "benchmarks" / "results").glob("training-*.json"))


def test_the_speed_tables_are_the_numbers() -> None:
    tables = load("speed_tables").tables(ROOT / "benchmarks" / "results")
    assert sorted(tables) == [
        "kernels-h200.md",
        "packing-h200.md",
        "training-aarch64.md",
        "training-h200.md",
    ]
    for name, text in tables.items():
        written = (ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8")
        assert written == text, f"{name} is not of the numbers: python benchmarks/speed_tables.py"


@pytest.mark.parametrize("numbers", SPEED, ids=lambda path: path.stem)
def test_a_speed_is_the_median_of_its_turns_and_a_ratio_to_the_habit(numbers: Path) -> None:
    for found in json.loads(numbers.read_text())["measurements"]:
        medians = {key: statistics.median(turns) for key, turns in found["turns"].items()}
        assert found["images_per_second"] == pytest.approx(medians, abs=0.051)
        habit = medians.pop("field")
        ratios = {key: rate / habit for key, rate in medians.items()}
        assert found["ratio"] == pytest.approx(ratios, abs=0.0051)


def test_the_table_of_rare_classes_is_of_the_numbers() -> None:
    numbers = ROOT / "benchmarks" / "results" / "audit-rare.json"
    module, content = load("audit_rare"), json.loads(numbers.read_text())
    assert numbers.with_suffix(".md").read_text() == module.table(content)
    assert {entry["set"] for entry in content["sets"]} == set(module.SETS)


def test_the_table_of_groups_is_of_the_numbers() -> None:
    numbers = ROOT / "benchmarks" / "results" / "audit-groups.json"
    module, content = load("audit_groups"), json.loads(numbers.read_text())
    assert numbers.with_suffix(".md").read_text() == module.table(content)
    assert {entry["rows"] for entry in content["sets"]} == set(module.SPREADS)


def test_the_table_of_mistakes_in_tables_is_of_the_numbers() -> None:
    numbers = ROOT / "benchmarks" / "results" / "audit-tables.json"
    module, content = load("audit_tables"), json.loads(numbers.read_text())
    assert numbers.with_suffix(".md").read_text() == module.table(content)
    assert {entry["kind"] for entry in content["sets"]} == set(module.KINDS)


def test_the_readme_claims_the_speed_that_was_measured() -> None:
    claim = load("speed_tables").claim(ROOT / "benchmarks" / "results", "h200")
    assert claim in (ROOT / "README.md").read_text(encoding="utf-8")


def test_packed_runs_came_to_what_they_came_to_alone() -> None:
    (numbers,) = (ROOT / "benchmarks" / "results").glob("packing-*.json")
    for runs in json.loads(numbers.read_text())["equal"].values():
        assert runs
        assert all(all(found.values()) for found in runs.values())


def test_the_estimators_tables_are_the_numbers() -> None:
    tables = load("estimator").tables(ROOT / "benchmarks" / "results")
    assert sorted(tables) == ["estimator-accuracy.md", "estimator-time.md"]
    for name, text in tables.items():
        written = (ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8")
        assert written == text, f"{name} is not of the numbers"


def test_the_tuners_table_is_the_numbers() -> None:
    folder = ROOT / "benchmarks" / "results"
    cells = []
    for name in ("digits", "mnist", "cifar10"):
        cells += json.loads((folder / f"tuning-{name}.json").read_text())
    written = (folder / "tuning.md").read_text(encoding="utf-8")
    assert written == load("tuning").means_table(cells) + "\n"


def test_the_table_of_images_on_a_cpu_is_the_numbers() -> None:
    numbers = ROOT / "benchmarks" / "results" / "images-on-a-cpu.json"
    entries = json.loads(numbers.read_text())
    assert numbers.with_suffix(".md").read_text() == load("images_on_a_cpu").table(entries)


def test_the_table_of_what_fit_costs_is_the_numbers() -> None:
    numbers = ROOT / "benchmarks" / "results" / "fit-aarch64.json"
    found = json.loads(numbers.read_text())
    assert numbers.with_suffix(".md").read_text() == load("fit").describe(found) + "\n"
    assert max(found[name]["megabytes"] for name in ("resident", "streamed")) < 2000


def test_the_audits_tables_are_the_numbers() -> None:
    folder = ROOT / "benchmarks" / "results"
    tables = load("audit").tables(folder)
    assert sorted(tables) == ["audit-retrained.md", "audit-scale.md", "audit.md"]
    for name, text in tables.items():
        written = (folder / name).read_text(encoding="utf-8")
        assert written == text, f"{name} is not of the numbers: python benchmarks/audit.py table"


def test_a_million_labels_are_audited_within_ten_seconds_and_two_gigabytes() -> None:
    found = json.loads((ROOT / "benchmarks" / "results" / "audit-scale.json").read_text())
    assert (found["samples"], found["classes"]) == (1_000_000, 100)
    assert found["ours"]["seconds"] < 10
    assert found["ours"]["megabytes"] < 2000
