"""The tables in the docs are those of the numbers that were measured."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks" / "results"
RESULTS = sorted(FOLDER.glob("losses-*.json"))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the module they are in
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("numbers", RESULTS, ids=lambda path: path.stem)
def test_the_table_is_the_numbers(numbers: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(numbers, tmp_path))
    load("losses").write_table(copy)
    assert copy.with_suffix(".md").read_text() == numbers.with_suffix(".md").read_text()


TABLES: dict[str, tuple[str, Callable[[ModuleType, Any], str]]] = {
    "audit-rare": ("audit_rare", lambda module, found: module.table(found)),
    "audit-groups": ("audit_groups", lambda module, found: module.table(found)),
    "audit-annotators": ("audit_annotators", lambda module, found: module.table(found)),
    "audit-tables": ("audit_tables", lambda module, found: module.table(found)),
    "images-on-a-cpu": ("images_on_a_cpu", lambda module, found: module.table(found)),
    "fit-aarch64": ("fit", lambda module, found: module.describe(found) + "\n"),
}


def test_a_table_is_of_its_numbers() -> None:
    for name, (script, write) in TABLES.items():
        numbers = FOLDER / f"{name}.json"
        found = json.loads(numbers.read_text())
        assert numbers.with_suffix(".md").read_text() == write(load(script), found), name
    for script in ("speed_tables", "estimator", "audit"):
        tables = load(script).tables(FOLDER)
        assert tables
        for name, text in tables.items():
            assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name} of {script}.py"
    cells = []
    for name in ("digits", "mnist", "cifar10"):
        cells += json.loads((FOLDER / f"tuning-{name}.json").read_text())
    written = (FOLDER / "tuning.md").read_text(encoding="utf-8")
    assert written == load("tuning").means_table(cells) + "\n"


def test_the_readme_claims_the_speed_that_was_measured() -> None:
    claim = load("speed_tables").claim(FOLDER, "h200")
    assert claim in (ROOT / "README.md").read_text(encoding="utf-8")
