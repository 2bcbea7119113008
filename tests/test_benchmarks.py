"""The tables in the docs are those of the numbers that were measured."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("losses-*.json"))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_numbers() -> None:
    assert [path.stem for path in RESULTS] == ["losses-cpu", "losses-h200"]


@pytest.mark.parametrize("numbers", RESULTS, ids=lambda path: path.stem)
def test_the_table_is_the_numbers(numbers: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(numbers, tmp_path))
    load("losses").write_table(copy)
    assert copy.with_suffix(".md").read_text() == numbers.with_suffix(".md").read_text()
