"""Which encoder of a table's columns: ours, scikit-learn's ColumnTransformer or skrub's.

Each turns the ten tables of `tables_golden.py` into features, learned from one half of the rows;
the same classifier is trained on them and measured on the other half. Needs the packages that
`tables_golden.py` names, and skrub.

    python benchmarks/table_encoders.py            # measures, and writes results/table-encoders.md
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from tables_golden import MOST_ROWS, SEEDS, TABLES

from labelproof import RobustClassifier
from labelproof.data import Columns

RESULTS = Path(__file__).parent / "results" / "table-encoders.md"
Halves = tuple[NDArray[Any], NDArray[Any]]


def ours(train: pd.DataFrame, test: pd.DataFrame) -> Halves:
    columns = Columns.learn(train, on_error="skip")
    return columns.encode(train, on_error="quiet"), columns.encode(test, on_error="quiet")


def scikit_learn(train: pd.DataFrame, test: pd.DataFrame) -> Halves:
    parts = []
    for table in (train, test):
        dates = table.select_dtypes("datetime")
        days = {name: dates[name].astype("int64") / 8.64e13 for name in dates}
        parts.append(table.assign(**days))
    numbers = parts[0].select_dtypes(["number", "bool"]).columns
    others = [name for name in parts[0].columns if name not in numbers]
    transformer = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), list(numbers)),
            (
                "categories",
                OneHotEncoder(
                    min_frequency=2,
                    max_categories=51,
                    handle_unknown="infrequent_if_exist",
                    sparse_output=False,
                ),
                others,
            ),
        ]
    )
    return transformer.fit_transform(parts[0]), transformer.transform(parts[1])  # pyright: ignore


def skrub(train: pd.DataFrame, test: pd.DataFrame) -> Halves:
    from skrub import TableVectorizer  # pyright: ignore[reportMissingImports]

    vectorizer = TableVectorizer()
    rows, new = vectorizer.fit_transform(train), vectorizer.transform(test)
    fill = np.nan_to_num(np.nanmedian(rows, axis=0))
    return np.where(np.isnan(rows), fill, rows), np.where(np.isnan(new), fill, new)


ENCODERS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Halves]] = {
    "labelproof": ours,
    "ColumnTransformer": scikit_learn,
    "skrub": skrub,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    lines = [f"| table | {' | '.join(ENCODERS)} |", f"|---{'|---:' * len(ENCODERS)}|"]
    seconds = dict.fromkeys(ENCODERS, 0.0)
    means: dict[str, list[float]] = {name: [] for name in ENCODERS}
    for table, read in TABLES.items():
        cells = []
        for name, encode in ENCODERS.items():
            right, total = 0, 0
            for seed in SEEDS:
                correct, rows, spent = measure(read(), seed, encode)
                right, total = right + correct, total + rows
                seconds[name] += spent
            means[name].append(100 * right / total)
            cells.append(f"{means[name][-1]:.1f}")
        lines.append(f"| {table} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    lines.append(f"| mean | {' | '.join(f'{np.mean(means[name]):.1f}' for name in ENCODERS)} |")
    lines.append(
        f"| seconds to encode, all | {' | '.join(f'{seconds[name]:.1f}' for name in ENCODERS)} |"
    )
    options.output.write_text("\n".join(lines) + "\n")


def measure(
    table: pd.DataFrame, seed: int, encode: Callable[[pd.DataFrame, pd.DataFrame], Halves]
) -> tuple[int, int, float]:
    """How many of the held-out rows are right, of how many, and the seconds that encoding took."""
    table = table.sample(frac=1, random_state=seed)[: 2 * MOST_ROWS].dropna(subset=["label"])
    half = len(table) // 2
    features, labels = table.drop(columns="label"), table["label"].astype(str).to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        rows, new = encode(features.iloc[:half], features.iloc[half:])
        spent = time.perf_counter() - start
        classifier = RobustClassifier(random_state=seed).fit(rows, labels[:half])
        predicted = classifier.predict(new)
    return int((predicted == labels[half:]).sum()), len(predicted), spent


if __name__ == "__main__":
    main()
