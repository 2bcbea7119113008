"""How far the scores of an audit can be trusted on small tables, where models are weak.

    python benchmarks/tables.py --export DIR
    python benchmarks/audit_small.py --tables DIR --output benchmarks/results/audit-small.json

Rows of the tables of `tables.py` get wrong labels; a forest and logistic regression predict them
by cross-validation, and the audit judges the labels. Mean scores of suspects stand beside the share
that is really wrong, as they are and as they were before `temper` halved their log odds.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelproof.audit import audit_labels
from labelproof.audit.noise_model import prior_weight

NOISES = ("none", "symmetric 0.1", "symmetric 0.2", "symmetric 0.4", "asymmetric 0.3")
MODELS: dict[str, Any] = {
    "forest": RandomForestClassifier(60, min_samples_leaf=3, random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
}

SUMS = ("suspects", "wrong", "claimed", "raw_claimed")


def main() -> None:
    """Audit every table, and write the numbers and their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, help="folder of the exported tables")
    parser.add_argument("--rows", type=int, nargs="+", default=[120, 250, 600])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    from tables import TABLES  # beside this file

    lines = [
        line
        for rows in options.rows
        for noise in NOISES
        for name in TABLES
        for line in measure(name, noise, rows, options.tables)
    ]
    options.output.write_text(json.dumps(lines) + "\n")
    options.output.with_suffix(".md").write_text(table(lines))


def measure(name: str, noise: str, rows: int, folder: Path | None) -> list[dict[str, Any]]:
    """A line for each model, or none for a table with too few rows of some class."""
    from tables import prepare

    train, right, given, _, _ = prepare(name, noise, 1, rows, folder)
    few = np.bincount(given, minlength=int(right.max()) + 1).min() < 5
    if len(train) < rows or few:
        return []
    found, folds = [], StratifiedKFold(5, shuffle=True, random_state=0)
    for model, classifier in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = cross_val_predict(classifier, train, given, cv=folds, method="predict_proba")
            findings = audit_labels(told, given)
        found.append(
            {"table": name, "noise": noise, "rows": rows, "model": model}
            | figures(findings.score.astype(np.float64), given != right)
        )
    return found


def figures(score: NDArray[np.float64], wrong: NDArray[np.bool_]) -> dict[str, float]:
    """The suspects, how many are wrong, their scores, and log losses; `raw` is before `temper`."""
    after = np.clip(score, 1e-4, 1 - 1e-4)
    odds = np.log(after / (1 - after)) * (1 + prior_weight(len(score)))
    raw = np.where(score > 0.5, np.clip(1 / (1 + np.exp(-odds)), 1e-4, 1 - 1e-4), after)
    suspects = score > 0.5
    found = {"suspects": int(suspects.sum()), "wrong": int(wrong[suspects].sum())}
    for name, each in (("", after), ("raw_", raw)):
        found[f"{name}claimed"] = round(float(each[suspects].sum()), 2)
        loss = -np.log(np.where(wrong, each, 1 - each)).mean()
        found[f"{name}loss"] = round(float(loss), 4)
    return found


def table(lines: list[dict[str, Any]]) -> str:
    """Shares by number of rows and model."""
    shown = [
        "| rows | model | audits | suspects | wrong | mean score | before | log loss | before |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["rows"], line["model"]), []).append(line)
    for (rows, model), chosen in groups.items():
        total = {name: sum(line[name] for line in chosen) for name in SUMS}
        losses = [np.mean([line[name] for line in chosen]) for name in ("loss", "raw_loss")]
        shares = [total[name] / total["suspects"] for name in ("wrong", "claimed", "raw_claimed")]
        numbers = [*(f"{share:.0%}" for share in shares), *(f"{loss:.3f}" for loss in losses)]
        shown.append(
            f"| {rows} | {model} | {len(chosen)} | {total['suspects']:,} | {' | '.join(numbers)} |"
        )
    return "\n".join(shown) + "\n"


if __name__ == "__main__":
    main()
