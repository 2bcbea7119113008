"""Labels of several annotators: who is right, beside cleanlab's multi-annotator scores.

    python -m venv rival && rival/bin/pip install cleanlab==2.9.0
    python benchmarks/audit_annotators.py --rival rival/bin/python   # about 15 minutes on one core

The tables of `tables.py`, each sample labelled by one to two or one to five of eight annotators.
How often each is right is drawn between a little better than guessing and 97%, with confusions of
their own. Both tools get the votes and the same out-of-sample probabilities, of a forest on the
majority's labels. The last columns are of `labelproof.audit` with `annotators` alone, which trains
its own models on the class that the votes make most probable. How far probabilities are sharpened
and annotators drawn to their mean was chosen on seven of the tables, with their true labels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict

RESULTS = Path(__file__).parent / "results" / "audit-annotators.json"
ANNOTATORS = 8
MOST_VOTES = (2, 5)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rival", type=Path, help="a Python that has cleanlab")
    parser.add_argument("--tables", type=Path, help="folder of the exported tables")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--answer", nargs=2, type=Path, help="votes for cleanlab, and its answer")
    options = parser.parse_args(arguments)
    if options.answer:
        answer(*options.answer)
        return
    from tables import TABLES, prepare

    found = []
    for name in TABLES:
        train, true, *_ = prepare(name, "none", 1, options.rows, options.tables)
        rows = np.nan_to_num(np.asarray(train, np.float64))
        for most in MOST_VOTES:
            measured = measure(rows, true, most, options.rival)
            if measured is not None:
                found.append({"table": name, "votes": f"1 to {most}", **measured})
                print(found[-1], flush=True)
    RESULTS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    RESULTS.with_suffix(".md").write_text(table(found), encoding="utf-8")


def measure(
    rows: NDArray[np.float64], true: NDArray[np.int64], most: int, rival: Path
) -> dict[str, float] | None:
    """How right both tools are about one table; `None` if the majority misses a class."""
    import labelproof
    from labelproof.data.annotators import judge_votes

    classes = int(true.max()) + 1
    votes = vote(true, classes, most, np.random.default_rng(most))
    counts = np.stack([(votes == label).sum(axis=1) for label in range(classes)], axis=1)
    majority = counts.argmax(axis=1)
    if np.bincount(majority, minlength=classes).min() < 5:
        return None
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    predicted: Any = cross_val_predict(forest, rows, majority, cv=5, method="predict_proba")
    with tempfile.TemporaryDirectory() as folder:
        source, file = Path(folder) / "votes.npz", Path(folder) / "answer.npz"
        np.savez(source, votes=votes, probabilities=predicted, majority=majority)
        subprocess.run([rival, __file__, "--answer", source, file], check=True)
        with np.load(file) as arrays:
            theirs = {name: arrays[name] for name in arrays.files}
    judged = judge_votes(votes, classes, predicted)
    frame = pd.DataFrame(rows, columns=[f"x{n}" for n in range(rows.shape[1])])
    names = [f"annotator {number}" for number in range(ANNOTATORS)]
    words = np.array([*map(str, range(classes)), ""], dtype=object)
    frame[names] = words[votes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = labelproof.audit(frame, annotators=names, seed=0)
    order = np.array([int(name) for name in audit.class_names])
    given, suggested = order[audit.findings.given], order[audit.findings.suggested]
    said = votes >= 0
    share = (said & (votes == true[:, None])).sum(axis=0) / said.sum(axis=0)
    own = 1 - judged.posterior[np.arange(len(true)), majority]
    wrong, rate = majority != true, audit.noise_rate
    return {
        "majority": float(np.mean(~wrong)),
        "cleanlab right": float(np.mean(theirs["consensus"] == true)),
        "right": float(np.mean(judged.posterior.argmax(axis=1) == true)),
        "cleanlab precision": float(average_precision_score(wrong, 1 - theirs["quality"])),
        "precision": float(average_precision_score(wrong, own)),
        "cleanlab annotators": float(np.abs(theirs["annotators"] - share).mean()),
        "annotators": float(np.abs(judged.accuracy - share).mean()),
        "audit right": float(np.mean(suggested == true[audit.index])),
        "rate": rate.value,
        "wrong": float(np.mean(given != true[audit.index])),
        "within": float(rate.low <= np.mean(given != true[audit.index]) <= rate.high),
    }


def vote(
    true: NDArray[np.int64], classes: int, most: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """What each annotator says of each sample, `(N, A)`; -1 for nothing."""
    right = generator.uniform(1 / classes + 0.1, 0.97, ANNOTATORS)
    confusion = generator.dirichlet(np.full(classes, 0.5), (ANNOTATORS, classes)) + 1e-6
    diagonal = np.arange(classes)
    confusion[:, diagonal, diagonal] = 0
    confusion *= (1 - right[:, None, None]) / confusion.sum(axis=2, keepdims=True)
    confusion[:, diagonal, diagonal] = right[:, None]
    votes = np.full((len(true), ANNOTATORS), -1)
    for sample, label in enumerate(true):
        size = generator.integers(1, most + 1)
        for annotator in generator.choice(ANNOTATORS, size, replace=False):
            votes[sample, annotator] = generator.choice(classes, p=confusion[annotator, label])
    return votes


def answer(source: Path, file: Path) -> None:
    """What cleanlab says, by its default and of the majority's labels; run by the rival."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    with np.load(source) as arrays:
        votes, predicted, majority = (
            arrays[name] for name in ("votes", "probabilities", "majority")
        )
    frame = pd.DataFrame(np.where(votes >= 0, votes, np.nan))
    best = get_label_quality_multiannotator(frame, predicted, verbose=False)
    quality = get_label_quality_multiannotator(
        frame, predicted, consensus_method="majority_vote", verbose=False
    )["label_quality"]
    same = quality["consensus_label"].to_numpy() == majority
    # It breaks ties another way; of those labels, the quality is that of its own choice.
    score = quality["consensus_quality_score"].to_numpy()
    np.savez(
        file,
        consensus=best["label_quality"]["consensus_label"].to_numpy(),
        quality=np.where(same, score, 1 - score),
        annotators=best["annotator_stats"].sort_index()["annotator_quality"].to_numpy(),
    )


def table(found: Sequence[dict[str, Any]]) -> str:
    """The means over the tables, for each number of votes."""
    rows = pd.DataFrame(found)
    lines = [
        "| votes a sample | tables | majority right | cleanlab | labelproof | wrong majorities, "
        "average precision: cleanlab | labelproof | error of annotators' accuracy: cleanlab | "
        "labelproof | `labelproof.audit`: right | its rate within the interval |",
        "|---|" + "---:|" * 10,
    ]
    for votes, part in rows.groupby("votes", sort=False):
        mean = part.mean(numeric_only=True)
        shares = [f"{100 * mean[name]:.1f}" for name in ("majority", "cleanlab right", "right")]
        precision = [f"{mean[name]:.3f}" for name in ("cleanlab precision", "precision")]
        errors = [f"{100 * mean[name]:.1f}" for name in ("cleanlab annotators", "annotators")]
        last = [f"{100 * mean['audit right']:.1f}", f"{int(part['within'].sum())} of {len(part)}"]
        cells = [str(votes), str(len(part)), *shares, *precision, *errors, *last]
        lines.append(f"| {' | '.join(cells)} |")
    ahead = {
        name: int((rows[name] > rows[f"cleanlab {name}"]).sum()) for name in ("right", "precision")
    }
    lines += [
        "",
        f"labelproof is ahead of cleanlab in {ahead['right']} of {len(rows)} cells by right labels "
        f"and in {ahead['precision']} by average precision.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
