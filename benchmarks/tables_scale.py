"""A table of 100,000 rows and 50 columns: time and memory of `RobustClassifier` and two others.

    python benchmarks/tables_scale.py --output benchmarks/results/tables-scale.md

The table is scikit-learn's `make_classification`, a fifth of its training labels wrong; accuracy is
on 20,000 more rows with right labels. Every fit is a process of its own, on one core. Its peak of
memory includes the table and the libraries.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from labelproof import RobustClassifier
from labelproof.noise import corrupt, symmetric_matrix

CLASSES = 4
METHODS: dict[str, Callable[[], Any]] = {
    "histogram boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "forest, leaf 5": lambda: RandomForestClassifier(min_samples_leaf=5, random_state=0),
    "RobustClassifier": lambda: RobustClassifier(random_state=0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--output", type=Path, help="a Markdown file")
    parser.add_argument("--method", choices=METHODS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.method:
        print(json.dumps(measure(options.method, options.rows, options.columns)))
        return
    lines = ["| method | accuracy | core s | / forest | peak MB |", "|---|---:|---:|---:|---:|"]
    found = {method: apart(method, options.rows, options.columns) for method in METHODS}
    for method, line in found.items():
        ratio = line["processor"] / found["forest, leaf 5"]["processor"]
        lines.append(
            f"| {method} | {line['accuracy']:.1f} | {line['processor']:.0f} | {ratio:.1f} "
            f"| {line['megabytes']:.0f} |"
        )
    table = "\n".join(lines) + "\n"
    print(table)
    if options.output:
        options.output.write_text(table, encoding="utf-8")


def apart(method: str, rows: int, columns: int) -> dict[str, float]:
    sizes = ["--rows", str(rows), "--columns", str(columns)]
    command = [sys.executable, __file__, "--method", method, *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(method: str, rows: int, columns: int) -> dict[str, float]:
    table, labels = make_classification(
        rows + 20_000,
        columns,
        n_informative=columns // 3,
        n_classes=CLASSES,
        n_clusters_per_class=3,
        flip_y=0.0,
        random_state=0,
    )
    noisy = corrupt(labels[:rows], symmetric_matrix(CLASSES, 0.2), seed=0).noisy
    with threadpool_limits(1):
        started = time.process_time()
        fitted = METHODS[method]().fit(table[:rows], noisy)
        processor = time.process_time() - started
        right = fitted.predict(table[rows:]) == labels[rows:]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    accuracy = 100 * float(np.mean(right))
    return {"accuracy": accuracy, "processor": processor, "megabytes": megabytes}


if __name__ == "__main__":
    main()
