"""How well labels are ranked by suspicion, beside cleanlab's scores, on the same probabilities.

    python benchmarks/audit_ranking.py predict --cache CACHE    # about 15 minutes on one core
    python benchmarks/audit_ranking.py measure --cache CACHE

The tables of `tables.py` with labels made wrong in three ways at several rates, and probabilities
by cross-validation with three models: logistic regression, a forest, and a weak model (logistic
regression that sees a quarter of the columns). A ranking is judged by its average precision. The
rival is the best of cleanlab's three scores in the mean of each row, which nobody without the true
labels could know. How far the noise model is trusted was chosen on every second table; the result
is of the others.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import astuple
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from labelproof.audit import audit_labels

RESULTS = Path(__file__).parent / "results" / "audit-ranking.json"
NOISES = (
    "symmetric 0.1",
    "symmetric 0.2",
    "symmetric 0.4",
    "asymmetric 0.2",
    "asymmetric 0.4",
    "instance 0.2",
    "instance 0.4",
)
MODELS = ("logistic regression", "forest", "weak")
SCORES = ("self-confidence", "normalized margin", "weighted entropy")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["predict", "measure", "table"])
    parser.add_argument("--cache", type=Path, help="folder of the predictions")
    parser.add_argument("--tables", type=Path, help="folder of the exported tables")
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args(arguments)
    if options.what == "predict":
        predict(options.tables, options.cache, options.rows)
        return
    if options.what == "measure":
        RESULTS.write_text(json.dumps(measure(options.cache), indent=0) + "\n", encoding="utf-8")
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")
    RESULTS.with_name("audit-rate.md").write_text(rate_table(content), encoding="utf-8")


def predict(tables: Path | None, cache: Path, rows: int, seed: int = 1) -> None:
    """Probabilities out of sample, kept in a file for each run."""
    # Not above: it needs the packages that ship the tables' readers.
    from tables import CHOSEN_ON, TABLES, prepare

    cache.mkdir(parents=True, exist_ok=True)
    for name, noise in product(TABLES, NOISES):
        train, right, given, _, _ = prepare(name, noise, seed, rows, tables)
        rare = np.bincount(given, minlength=int(right.max()) + 1) < 5
        kept = ~rare[given] & ~rare[right]
        train = np.nan_to_num(np.asarray(train[kept], np.float64))
        words, codes = np.unique(given[kept], return_inverse=True)
        known = {"given": codes, "true": np.searchsorted(words, right[kept])}
        known |= {"chosen_on": name in CHOSEN_ON}
        for model in MODELS:
            path = cache / f"{name}+{noise}+{model}.npz"
            if path.exists():
                continue
            folds = StratifiedKFold(5, shuffle=True, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                told: Any = cross_val_predict(
                    _model(model, seed, train.shape[1]),
                    train,
                    codes,
                    cv=folds,
                    method="predict_proba",
                )
            np.savez(path, allow_pickle=False, probabilities=np.asarray(told, np.float32), **known)


def _model(name: str, seed: int, columns: int) -> Any:
    if name == "forest":
        return RandomForestClassifier(100, random_state=seed)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    if name != "weak":
        return linear
    drawn = np.random.default_rng(seed).choice(columns, max(columns // 4, 1), replace=False)
    return make_pipeline(FunctionTransformer(_take, kw_args={"columns": drawn}), linear)


def _take(rows: NDArray[np.float64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
    return rows[:, columns]


def measure(cache: Path) -> list[dict[str, Any]]:
    """The average precision of the audit's score and of cleanlab's three, run by run."""
    found = []
    for path in sorted(cache.glob("*.npz")):
        name, noise, model = path.stem.split("+")
        with np.load(path) as arrays:
            told, given, true = arrays["probabilities"], arrays["given"], arrays["true"]
            entry: dict[str, Any] = {"chosen_on": bool(arrays["chosen_on"])}
        wrong = given != true
        if not wrong.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            findings = audit_labels(told, given)
        scores = {"audit": findings.score, **cleanlab_scores(told, given)}
        entry |= {"table": name, "noise": noise, "model": model}
        entry |= {"agreement": round(findings.agreement.value, 4), "wrong": float(wrong.mean())}
        entry |= {"rate": [round(end, 4) for end in astuple(findings.noise_rate)]}
        for score, values in scores.items():
            entry[score] = round(float(average_precision_score(wrong, values)), 4)
        found.append(entry)
    return found


def cleanlab_scores(
    told: NDArray[np.floating], given: NDArray[np.int64]
) -> dict[str, NDArray[np.floating]]:
    """How suspicious labels are by each of the scores of `cleanlab.rank`, by their formulas."""
    places = np.arange(len(given))
    own, others = told[places, given], told.copy()
    others[places, given] = -1
    logarithms = np.log(np.maximum(told, 1e-12))
    entropy = -(told * logarithms).sum(axis=1) / np.log(told.shape[1])
    return dict(
        zip(SCORES, (-own, others.max(axis=1) - own, entropy / np.maximum(own, 1e-12)), strict=True)
    )


def table(content: list[dict[str, Any]]) -> str:
    """Means over held-out tables for each kind and rate, and for each model."""
    frame: Any = pd.DataFrame(content)
    held = frame[~frame["chosen_on"]]
    lines = [
        "| noise | predictions by | runs | audit | cleanlab's best score "
        "| worst run | runs more than .02 behind |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    groups = [(noise, "all", rows) for noise, rows in held.groupby("noise", sort=False)]
    groups += [("all", model, rows) for model, rows in held.groupby("model", sort=False)]
    weak = held[held["noise"].isin(["symmetric 0.1", "symmetric 0.2"]) & (held["agreement"] < 0.7)]
    groups += [("symmetric, agreement < 70%", "all", weak)]
    for noise, model, rows in groups:
        best = rows[list(SCORES)].mean().idxmax()
        behind = rows["audit"] - rows[best]
        lines.append(
            f"| {noise} | {model} | {len(rows)} | {rows['audit'].mean():.3f} "
            f"| {rows[best].mean():.3f} ({best}) | {behind.min():+.3f} "
            f"| {(behind < -0.02).sum()} |"
        )
    return "\n".join(lines) + "\n"


def rate_table(content: list[dict[str, Any]]) -> str:
    """How often the interval of the rate holds the truth, by how good the model is."""
    frame: Any = pd.DataFrame(content)
    frame[["value", "low", "high"]] = frame["rate"].tolist()
    predicted = frame["agreement"] / (1 - frame["wrong"])
    lines = [
        "| predicted labels, as a share of the right ones | runs | wrong | estimated "
        "| interval holds | its width |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for low, high in ((0.85, np.inf), (0.7, 0.85), (0, 0.7)):
        rows = frame[(predicted >= low) & (predicted < high)]
        held = (rows["low"] <= rows["wrong"]) & (rows["wrong"] <= rows["high"])
        name = f"{low:.0%} or more" if high == np.inf else f"{low:.0%} to {high:.0%}"
        lines.append(
            f"| {name} | {len(rows)} | {rows['wrong'].mean():.1%} | {rows['value'].mean():.1%} "
            f"| {held.mean():.0%} | {(rows['high'] - rows['low']).mean():.1%} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
