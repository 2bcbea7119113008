"""The tables in the docs are those of the numbers that were measured."""

import ast
import importlib
import json
import shutil
from functools import partial
from pathlib import Path

from scripts import ROOT, load_script

load = partial(load_script, "benchmarks")
FOLDER = ROOT / "benchmarks" / "results"


def test_what_a_benchmark_imports_is_there() -> None:
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("labelproof"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, each.name) for each in node.names), (path.name, module)


def test_a_table_is_of_its_numbers(tmp_path: Path) -> None:
    for numbers in FOLDER.glob("losses-*.json"):
        copy = Path(shutil.copy(numbers, tmp_path))
        load("losses").write_table(copy)
        assert copy.with_suffix(".md").read_text() == numbers.with_suffix(".md").read_text()
    named = ["audit-rare", "audit-groups", "audit-annotators", "audit-tables", "images-on-a-cpu"]
    named += ["audit-small", "short-runs", "growth"]
    writers = {name: load(name.replace("-", "_")).table for name in named}
    writers["fit-aarch64"] = lambda found: load("fit").describe(found) + "\n"
    for name, write in writers.items():
        numbers = FOLDER / f"{name}.json"
        found = json.loads(numbers.read_text())
        assert numbers.with_suffix(".md").read_text() == write(found), name
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
    lines = [json.loads(line) for line in (FOLDER / "texts.jsonl").read_text().splitlines()]
    assert (FOLDER / "texts.md").read_text() == load("texts").table(lines)


def test_the_readme_claims_the_speed_that_was_measured() -> None:
    claim = load("speed_tables").claim(FOLDER, "h200")
    assert claim in (ROOT / "README.md").read_text(encoding="utf-8")
