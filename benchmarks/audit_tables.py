"""How well wrong labels are found in tables, beside cleanlab, by the way they came about.

    python -m venv rival && rival/bin/pip install cleanlab==2.9.0
    python benchmarks/audit_tables.py --rival rival/bin/python

Made tables whose classes lie more or less apart, and public ones that scikit-learn brings, each
with mistakes of several kinds: none at all; any other class; the next class; one class taken for
another, and nothing the other way round; and where a forest that knows the truth is in doubt. Each
is predicted by cross-validation, with the loss that `labelproof audit` takes, and both judge the
same predictions. The true labels are looked at when all is done, to count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from labelproof import RobustClassifier
from labelproof.audit import audit_labels, audit_loss
from labelproof.fitting.recipe import Inputs
from labelproof.training.files import write_text
from labelproof.training.record import versions

RESULTS = Path(__file__).parent / "results"
KINDS = {
    "none": "none",
    "any": "any other class, 10%",
    "many": "any other class, 30%",
    "next": "the next class, 25%",
    "first": "the first class for the second, 35%",
    "second": "the second class for the next, 20%",
    "doubts": "where a forest is in doubt, 12%",
}
Features, Labels = NDArray[np.float64], NDArray[np.int64]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["measure", "table"], default="measure")
    parser.add_argument("--rival", type=Path, help="a Python that has cleanlab")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    numbers = options.output / "audit-tables.json"
    if options.what == "measure":
        if options.rival is None:
            parser.error("--rival: expected a Python that has cleanlab")
        rows = measure(options.rival)
        content = {"sets": rows, "versions": versions(torch.device("cpu"))}
        write_text(numbers, json.dumps(content, indent=1) + "\n")
    write_text(numbers.with_suffix(".md"), table(json.loads(numbers.read_text())))


def measure(rival: Path) -> list[dict[str, Any]]:
    """Both, on every table with mistakes of every kind."""
    found = []
    for name, features, true in tables():
        for kind, given in mistaken(features, true):
            probabilities = predict(features, given)
            wrong = given != true
            entry = {
                "set": name,
                "kind": kind,
                "wrong": float(wrong.mean()),
                "mistakes": int(wrong.sum()),
                "accuracy": float((probabilities.argmax(axis=1) == true).mean()),
                "ours": ours(probabilities, given, wrong),
                "cleanlab": cleanlab(rival, probabilities, given, wrong),
            }
            found.append(entry)
            print(json.dumps(entry), flush=True)
    return found


def tables() -> Iterator[tuple[str, Features, Labels]]:
    """Name, features and true labels."""
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        found: Any = load(return_X_y=True)
        yield name, *standardised(*found)
    for apart in (0.5, 1.0, 2.0):
        yield f"two classes, {apart:g} apart", *made(1500, 2, apart, seed=1)
    yield "two classes, one of them 20%", *made(1500, 2, 1.0, seed=3, weights=[0.8])
    for apart in (0.7, 1.5):
        yield f"four classes, {apart:g} apart", *made(2000, 4, apart, seed=2)


def made(
    samples: int, classes: int, apart: float, *, seed: int, weights: Sequence[float] | None = None
) -> tuple[Features, Labels]:
    found: Any = make_classification(
        samples,
        10 if classes == 2 else 12,
        n_informative=6 if classes == 2 else 8,
        n_classes=classes,
        class_sep=apart,
        flip_y=0,
        weights=weights,
        random_state=seed,
    )
    return standardised(*found)


def standardised(features: Features, true: Labels) -> tuple[Features, Labels]:
    return (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9), true


def mistaken(features: Features, true: Labels) -> Iterator[tuple[str, Labels]]:
    """Kinds of mistakes, and the labels with them."""
    generator = np.random.default_rng(7)
    classes, size = int(true.max()) + 1, len(true)

    def chance() -> NDArray[np.float64]:
        return generator.random(size)

    yield "none", true.copy()
    other = (true + generator.integers(1, classes, size)) % classes
    yield "any", np.where(chance() < 0.1, other, true)
    yield "first", np.where((true == 0) & (chance() < 0.35), 1, true)
    yield "second", np.where((true == 1) & (chance() < 0.2), 2 % classes, true)
    if classes > 2:
        yield "many", np.where(chance() < 0.3, other, true)
        yield "next", np.where(chance() < 0.25, (true + 1) % classes, true)
    forest = RandomForestClassifier(100, random_state=0)
    doubts: Any = cross_val_predict(forest, features, true, cv=5, method="predict_proba")
    doubts[np.arange(size), true] = -1
    doubt = doubts.max(axis=1) + 0.02
    share = np.minimum(0.12 * doubt / doubt.mean(), 0.6)
    yield "doubts", np.where(chance() < share, doubts.argmax(axis=1), true)


def predict(features: Features, given: Labels) -> NDArray[np.float64]:
    """By networks that have not seen the labels of what they predict."""
    inputs = Inputs("rows", features.shape[1:], len(given), int(given.max()) + 1)
    network = RobustClassifier(audit_loss(inputs, given), random_state=0)
    found: Any = cross_val_predict(network, features, given, cv=5, method="predict_proba")
    return found.astype(np.float64)


def ours(
    probabilities: NDArray[np.float64], given: Labels, wrong: NDArray[np.bool_]
) -> dict[str, Any]:
    """What the audit finds."""
    findings = audit_labels(probabilities, given)
    rate = findings.noise_rate
    suspected = np.zeros(len(given), dtype=np.bool_)
    suspected[findings.suspects] = True
    return {
        **counted(suspected, wrong),
        "rate": rate.value,
        "low": rate.low,
        "high": rate.high,
    }


def cleanlab(
    python: Path, probabilities: NDArray[np.float64], given: Labels, wrong: NDArray[np.bool_]
) -> dict[str, Any]:
    """What cleanlab finds in the same predictions."""
    # Not above: the tests look at the table alone, from another folder.
    from audit_cleanlab import ask

    found = ask(python, probabilities, given)
    return {
        **counted(found["suspected"], wrong),
        "rate": float(found["rate"]),
        "version": str(found["version"]),
    }


def counted(suspected: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> dict[str, Any]:
    return {"suspects": int(suspected.sum()), "right": int((suspected & wrong).sum())}


def table(content: dict[str, Any]) -> str:
    """The numbers as Markdown: means over the tables, for each kind of mistakes."""
    lines = [
        "| mistakes | tables | wrong | found by cleanlab | of its suspects wrong "
        "| its rate is off by | found by the audit | of its suspects wrong "
        "| its rate is off by | interval holds it |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, said in KINDS.items():
        entries = [entry for entry in content["sets"] if entry["kind"] == kind]
        held = sum(_holds(entry) for entry in entries)
        cells = [said, str(len(entries)), f"{np.mean([each['wrong'] for each in entries]):.1%}"]
        for who in ("cleanlab", "ours"):
            cells += [
                _share(entries, who, "recall"),
                _share(entries, who, "precision"),
                f"{np.mean([abs(each[who]['rate'] - each['wrong']) for each in entries]):.1%}",
            ]
        lines.append(f"| {' | '.join([*cells, f'{held} of {len(entries)}'])} |")
    (version,) = {entry["cleanlab"]["version"] for entry in content["sets"]}
    found = {**content["versions"], "cleanlab": version}
    named = ", ".join(f"{name} {version}" for name, version in found.items())
    return "\n".join(lines) + f"\n\nMeasured with {named}.\n"


def _holds(entry: dict[str, Any]) -> bool:
    return entry["ours"]["low"] <= entry["wrong"] <= entry["ours"]["high"]


def _share(entries: Sequence[dict[str, Any]], who: str, what: str) -> str:
    """The mean share that is right: of all mistakes, or of all suspects."""
    sizes = [each["mistakes"] if what == "recall" else each[who]["suspects"] for each in entries]
    shares = [each[who]["right"] / size for each, size in zip(entries, sizes, strict=True) if size]
    return f"{np.mean(shares):.0%}" if shares else "–"


if __name__ == "__main__":
    main()
