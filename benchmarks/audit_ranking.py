"""How well labels are ranked by suspicion, beside cleanlab, on the same probabilities.

    python benchmarks/tables.py --export DIR
    python benchmarks/audit_ranking.py predict --tables DIR --cache CACHE
    python benchmarks/audit_ranking.py measure --cache CACHE    # needs cleanlab==2.9.*

Twelve real tables, labels made wrong in three ways at several rates, and probabilities by
cross-validation with three models: logistic regression, a forest, and a weak model (logistic
regression that sees a quarter of the columns). A ranking is judged by its average precision. The
rival is the best of cleanlab's three scores in the mean of each row of the table, which somebody
without the true labels could not know. The limits of `trust_in_model` were chosen on every second
run; the others are shown apart.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
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
TABLES = (
    "australian",
    "breast cancer",
    "contraceptive",
    "German credit",
    "letter",
    "page blocks",
    "penguins",
    "phoneme",
    "satimage",
    "segment",
    "vehicle",
    "wine",
)
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
SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["predict", "measure", "table"])
    parser.add_argument("--tables", type=Path, help="folder of the exported tables")
    parser.add_argument("--cache", type=Path, help="folder of the predictions")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args(arguments)
    if options.what == "predict":
        predict(options.tables, options.cache, options.seeds, options.rows)
    if options.what == "measure":
        RESULTS.write_text(json.dumps(measure(options.cache), indent=0) + "\n", encoding="utf-8")
    if options.what != "predict":
        content = json.loads(RESULTS.read_text(encoding="utf-8"))
        RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")


def predict(tables: Path, cache: Path, seeds: int, rows: int) -> None:
    """Probabilities out of sample, kept in a file for each run."""
    # Not above: it needs the packages that ship the tables' readers.
    from tables import prepare

    cache.mkdir(parents=True, exist_ok=True)
    for seed, name, noise in product(range(1, seeds + 1), TABLES, NOISES):
        train, right, given, _, _ = prepare(name, noise, seed, rows, tables)
        rare = np.bincount(given, minlength=int(right.max()) + 1) < 5
        kept = ~rare[given] & ~rare[right]
        train = np.nan_to_num(np.asarray(train[kept], np.float64))
        words, codes = np.unique(given[kept], return_inverse=True)
        true = np.searchsorted(words, right[kept])
        for model in MODELS:
            path = cache / f"{name}-{noise}-{seed}-{model}.npz".replace(" ", "_")
            if path.exists():
                continue
            folds = StratifiedKFold(5, shuffle=True, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                told = cross_val_predict(
                    _model(model, seed, train.shape[1]),
                    train,
                    codes,
                    cv=folds,
                    method="predict_proba",
                )
            np.savez(path, probabilities=np.asarray(told, np.float32), given=codes, true=true)


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
    from cleanlab.rank import (  # pyright: ignore[reportMissingImports]
        get_label_quality_scores,
    )

    found = []
    for path in sorted(cache.glob("*.npz")):
        name, noise, seed, model = path.stem.replace("_", " ").split("-")
        with np.load(path) as arrays:
            told, given, true = arrays["probabilities"], arrays["given"], arrays["true"]
        wrong = given != true
        if not wrong.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            findings = audit_labels(told, given)
        rate = findings.noise_rate
        entry: dict[str, Any] = {"table": name, "noise": noise, "seed": int(seed), "model": model}
        entry |= {
            "wrong": float(wrong.mean()),
            "agreement": findings.agreement.value,
            "held": bool(rate.low <= wrong.mean() <= rate.high),
            "audit": float(average_precision_score(wrong, findings.score)),
        }
        for score in SCORES:
            quality = get_label_quality_scores(given, told, method=score)
            entry[score] = float(average_precision_score(wrong, -quality))
        found.append({key: _rounded(value) for key, value in entry.items()})
    return found


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def table(content: list[dict[str, Any]]) -> str:
    """Means over tables and seeds for each kind and rate, and for each model."""
    frame = pd.DataFrame(content)
    # How far the noise model is trusted was chosen on every second run.
    frame["held_out"] = np.arange(len(frame)) % 2 == 1
    lines = [
        "| noise | predictions by | runs | audit | cleanlab's best score | both on held-out runs "
        "| worst run | runs more than .02 behind | rate's interval holds |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    groups = [((noise, "all"), rows) for noise, rows in frame.groupby("noise", sort=False)]
    groups += [(("all", model), rows) for model, rows in frame.groupby("model", sort=False)]
    for (noise, model), rows in groups:
        best = rows[list(SCORES)].mean().idxmax()
        behind = rows["audit"] - rows[best]
        held = rows[rows["held_out"]]
        lines.append(
            f"| {noise} | {model} | {len(rows)} | {rows['audit'].mean():.3f} "
            f"| {rows[best].mean():.3f} ({str(best).replace('_', ' ')}) "
            f"| {held['audit'].mean():.3f}, {held[best].mean():.3f} | {behind.min():+.3f} "
            f"| {(behind < -0.02).sum()} | {rows['held'].mean():.0%} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
