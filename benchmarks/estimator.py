"""RobustClassifier against scikit-learn's MLPClassifier: how long a fit takes, and its worth.

    python benchmarks/estimator.py time       # 100,000 rows, both sides in turns
    python benchmarks/estimator.py accuracy   # wrong labels to learn from, right ones to test on
    python benchmarks/estimator.py table      # write the tables anew from the numbers

Time: the same network, batch size, number of epochs, learning rate and rows on both sides, in turns
within one run, each on one thread and in seconds of the processor, since a busy machine would be
measured along with the rest; the ratio is that of the medians. Accuracy: four sets that come with
scikit-learn, a quarter of each held out with its true labels, symmetric noise on the labels of the
rest, the default settings of both sides, and for the perceptron inputs that are standardised, and
as many iterations as it wants. What is held out was not used to choose any default:
`estimator_settings.py` tells how they were chosen.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from labelproof import RobustClassifier
from labelproof.noise import UnlearnableClassWarning, corrupt, symmetric_matrix
from labelproof.training.record import versions

RESULTS = Path(__file__).parent / "results"
SETS = ("digits", "wine", "breast_cancer", "iris")
RATES = (0.2, 0.4)
SEEDS = range(5)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["time", "accuracy", "table"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of both sides")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    if options.what != "table":
        found = measure_time(options) if options.what == "time" else measure_accuracy()
        content = {
            "versions": {**versions(torch.device("cpu")), "scikit-learn": sklearn.__version__},
            "threads": options.threads,
            **found,
        }
        file = options.output / f"estimator-{options.what}.json"
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for name, text in tables(options.output).items():
        (options.output / name).write_text(text, encoding="utf-8")
        print(text)


def training_part(name: str, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What is learned from: three quarters of a set, with labels of which some are wrong."""
    features, labels = _load(name)
    kept, _ = _divide(labels, seed)
    count = len(np.unique(labels))
    with warnings.catch_warnings():
        # At 40 % more labels of the smaller tumour class are wrong than right.
        warnings.simplefilter("ignore", UnlearnableClassWarning)
        noisy = corrupt(labels[kept], symmetric_matrix(count, rate), seed=seed).noisy
    return features[kept], noisy


def test_part(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What is measured on: the other quarter, with its true labels."""
    features, labels = _load(name)
    _, held = _divide(labels, seed)
    return features[held], labels[held]


def _load(name: str) -> tuple[np.ndarray, np.ndarray]:
    bunch: Any = getattr(datasets, f"load_{name}")()
    return bunch.data, bunch.target.astype(np.int64)


def _divide(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    kept, held = train_test_split(
        np.arange(len(labels)), test_size=0.25, random_state=seed, stratify=labels
    )
    return np.sort(kept), np.sort(held)


def measure_time(options: argparse.Namespace) -> dict[str, Any]:
    """Let both sides fit in turns."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(options.rows, 50))
    labels = (features[:, :10] @ generator.normal(size=(10, 10))).argmax(axis=1)
    common: dict[str, Any] = {"batch_size": 200, "random_state": 0}
    sides = {
        "MLPClassifier": MLPClassifier(
            (100,), solver="sgd", learning_rate_init=0.02, max_iter=options.epochs, **common
        ),
        "RobustClassifier": RobustClassifier(
            network="mlp(hidden=100,depth=1)", epochs=options.epochs, **common
        ),
        "RobustClassifier(loss='ce')": RobustClassifier(
            "ce", network="mlp(hidden=100,depth=1)", epochs=options.epochs, **common
        ),
    }
    turns: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.turns):
        for name, side in sides.items():
            with warnings.catch_warnings(), threadpool_limits(options.threads):
                warnings.simplefilter("ignore", ConvergenceWarning)
                start = time.process_time()
                side.fit(features, labels)
            turns[name].append(round(time.process_time() - start, 3))
            print(f"{name}: {turns[name][-1]} s", flush=True)
    return {"rows": options.rows, "features": 50, "epochs": options.epochs, "turns": turns}


def measure_accuracy() -> dict[str, Any]:
    """Fit all sides on noisy labels, and look how often they are right."""
    cells: list[dict[str, Any]] = []
    for name in SETS:
        for rate in RATES:
            scores: dict[str, list[float]] = {}
            for seed in SEEDS:
                features, noisy = training_part(name, rate, seed)
                for side, estimator in _sides(seed).items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ConvergenceWarning)
                        estimator.fit(features, noisy)
                    right = float(estimator.score(*test_part(name, seed)))
                    scores.setdefault(side, []).append(round(100 * right, 2))
            cells.append({"set": name, "rate": rate, "scores": scores})
            said = ", ".join(f"{side} {statistics.mean(each):.1f}" for side, each in scores.items())
            print(f"{name} {rate}: {said}", flush=True)
    return {"cells": cells}


def _sides(seed: int) -> dict[str, Any]:
    def perceptron(**options: Any) -> Any:
        made = MLPClassifier(max_iter=2000, random_state=seed, **options)
        return make_pipeline(StandardScaler(), made)

    return {
        "MLPClassifier": perceptron(),
        "MLPClassifier(early_stopping=True)": perceptron(early_stopping=True),
        "RobustClassifier": RobustClassifier(estimator="network", random_state=seed),
    }


def tables(folder: Path) -> dict[str, str]:
    """The tables of the numbers that are there."""
    found: dict[str, str] = {}
    for what, write in (("time", _time_table), ("accuracy", _accuracy_table)):
        file = folder / f"estimator-{what}.json"
        if file.exists():
            content = json.loads(file.read_text(encoding="utf-8"))
            found[f"estimator-{what}.md"] = write(content) + _where(content)
    return found


def _time_table(content: dict[str, Any]) -> str:
    medians = {name: statistics.median(turns) for name, turns in content["turns"].items()}
    lines = [
        f"| a fit of {content['rows']:,} rows of {content['features']} features, "
        f"{content['epochs']} epochs | processor seconds | ratio |",
        "|---|---:|---:|",
    ]
    for name, seconds in medians.items():
        ratio = seconds / medians["MLPClassifier"]
        lines.append(f"| `{name}` | {seconds:.2f} | {ratio:.2f} |")
    return "\n".join(lines)


def _accuracy_table(content: dict[str, Any]) -> str:
    sides = list(content["cells"][0]["scores"])
    lines = [
        f"| | wrong labels | {' | '.join(f'`{side}`' for side in sides)} | ahead by |",
        f"|---|---:|{'---:|' * len(sides)}---:|",
    ]
    ahead: dict[float, list[float]] = {}
    for cell in content["cells"]:
        means = [statistics.mean(cell["scores"][side]) for side in sides]
        ahead.setdefault(cell["rate"], []).append(means[-1] - means[0])
        shown = " | ".join(f"{mean:.1f}" for mean in means)
        title = cell["set"].replace("_", " ")
        lines.append(f"| {title} | {cell['rate']:.0%} | {shown} | {ahead[cell['rate']][-1]:.1f} |")
    for rate, each in ahead.items():
        lines.append(f"| mean | {rate:.0%} |{' |' * len(sides)} {statistics.mean(each):.1f} |")
    seeds = len(content["cells"][0]["scores"][sides[0]])
    lines += [
        "",
        f"Accuracy in percent on clean labels, mean of {seeds} seeds; ahead of the first column.",
    ]
    return "\n".join(lines)


def _where(content: dict[str, Any]) -> str:
    said = content["versions"]
    return (
        f"\n\nMeasured on {said['machine']} (threads: {content['threads']}) with torch "
        f"{said['torch']}, scikit-learn {said['scikit-learn']}, labelproof {said['labelproof']}.\n"
    )


if __name__ == "__main__":
    main()
