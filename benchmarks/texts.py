"""Texts with wrong labels: accuracy on clean labels and time beside TF-IDF and logistic regression.

The texts are the descriptions of Debian's packages, the classes the twenty largest sections of its
archive, such as `python`, `games` or `doc`. A part of the training labels is replaced by others,
drawn evenly; 5,000 other packages with their own labels measure accuracy. The settings of logistic
regression are the best by these, which no user could choose. Needs `apt-cache` with package lists.

    python benchmarks/texts.py     # about 10 minutes; writes results/texts.jsonl and texts.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from labelproof import RobustClassifier

RESULTS = Path(__file__).parent / "results"
SIZES = (300, 1000, 5000, 20_000)
RATES = (0.0, 0.3)
SEEDS = (0, 1, 2)
CLASSES = 20
HELD_OUT = 5000
STRENGTHS = (1.0, 5.0, 25.0)


def read_packages() -> pd.DataFrame:
    """Descriptions, installed sizes and sections; packages with the same description count once."""
    command = ["/usr/bin/apt-cache", "dumpavail"]
    listed = subprocess.run(command, capture_output=True, check=True, text=True)
    packages = []
    for stanza in listed.stdout.split("\n\n"):
        field, values = "", {}
        for line in stanza.splitlines():
            if not line.startswith(" "):
                field, _, line = line.partition(": ")
            values[field] = f"{values.get(field, '')} {line.strip()}".strip()
        if "Description" in values and "Section" in values:
            section = values["Section"].rpartition("/")[2]
            size = int(values.get("Installed-Size", 0))
            packages.append((values["Description"], size, section))
    table = pd.DataFrame(packages, columns=["description", "size", "label"])
    table = table.drop_duplicates("description")
    largest = table["label"].value_counts().index[:CLASSES]
    return table[table["label"].isin(largest)].sort_values("description", ignore_index=True)


def with_wrong_labels(labels: NDArray[Any], rate: float, seed: int) -> NDArray[Any]:
    """A part of the labels replaced by other classes, drawn evenly."""
    random = np.random.default_rng([seed, 1])
    names, given = np.unique(labels, return_inverse=True)
    wrong = random.random(len(labels)) < rate
    moved = given + random.integers(1, len(names), len(labels))
    return names[np.where(wrong, moved % len(names), given)]


def logistic_regression(
    train: pd.DataFrame, given: NDArray[Any], test: pd.DataFrame
) -> tuple[float, float]:
    """The accuracy of the best strength, and the seconds of one."""
    start = time.perf_counter()
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    inputs, new = words.fit_transform(train["description"]), words.transform(test["description"])
    spent = time.perf_counter() - start
    found, start = [], time.perf_counter()
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=200).fit(inputs, given)
        found.append(float((model.predict(new) == test["label"]).mean()))
    return max(found), spent + (time.perf_counter() - start) / len(STRENGTHS)


def ours(train: pd.DataFrame, given: NDArray[Any], test: pd.DataFrame) -> tuple[float, float]:
    """The accuracy of the default classifier, and its seconds."""
    start = time.perf_counter()
    model = RobustClassifier(estimator="auto", random_state=0).fit(
        train.drop(columns="label"), given
    )
    spent = time.perf_counter() - start
    return float((model.predict(test.drop(columns="label")) == test["label"]).mean()), spent


def measure(
    packages: pd.DataFrame, columns: str, size: int, rate: float, seed: int
) -> dict[str, Any]:
    shuffled = packages.sample(frac=1, random_state=seed)
    test, train = shuffled[:HELD_OUT], shuffled[HELD_OUT : HELD_OUT + size]
    given = with_wrong_labels(train["label"].to_numpy(), rate, seed)
    best, other_seconds = logistic_regression(train, given, test)
    if columns == "text":
        train, test = train.drop(columns="size"), test.drop(columns="size")
    accuracy, seconds = ours(train, given, test)
    return {
        "columns": columns,
        "rows": size,
        "rate": rate,
        "seed": seed,
        "labelproof": round(100 * accuracy, 2),
        "logistic_regression": round(100 * best, 2),
        "labelproof_seconds": round(seconds, 1),
        "logistic_regression_seconds": round(other_seconds, 1),
    }


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The means over seeds, and the ratio of the times."""
    found = pd.DataFrame(lines)
    mean = found.groupby(["columns", "rows", "rate"], sort=False).mean().reset_index()
    rows = [
        "| columns | rows | wrong | labelproof | TF-IDF, logistic regression | time, its = 1 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for line in mean.to_dict("records"):
        ratio = line["labelproof_seconds"] / line["logistic_regression_seconds"]
        rows.append(
            f"| {line['columns']} | {line['rows']:,} | {line['rate']:.0%} | "
            f"{line['labelproof']:.1f} | {line['logistic_regression']:.1f} | {ratio:.1f} |"
        )
    return "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--rates", type=float, nargs="*", default=RATES)
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--columns", nargs="*", default=["text", "text and number"])
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    packages, lines = read_packages(), []
    print(f"{len(packages):,} packages", flush=True)
    with (options.folder / "texts.jsonl").open("w") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for columns in options.columns:
            for size in options.sizes:
                for rate in options.rates:
                    for seed in options.seeds:
                        lines.append(measure(packages, columns, size, rate, seed))
                        print(json.dumps(lines[-1]), file=log, flush=True)
                        print(json.dumps(lines[-1]), flush=True)
    (options.folder / "texts.md").write_text(table(lines))


if __name__ == "__main__":
    main()
