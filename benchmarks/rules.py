"""What a wide forest adds to the blend where labels follow sharp rules of a few features.

    python benchmarks/rules.py --output benchmarks/results/rules.md

The label of a made-up row is one feature's threshold or else another's, plus one where two more
are high, among twelve features. Some training labels are wrong; 3,000 clean rows test.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from labelproof import RobustClassifier
from labelproof.noise import corrupt, symmetric_matrix
from labelproof.tabular import committee


def make_rows(size: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of 12 features, and their right labels."""
    generator = np.random.default_rng(seed)
    even, skewed = generator.uniform(size=(size, 4)), np.exp(2 * generator.normal(size=(size, 4)))
    rows = np.hstack([even, skewed, generator.integers(0, 5, (size, 4))])
    either = (rows[:, 0] > 0.5) ^ (rows[:, 4] > 1)
    return rows, either + ((rows[:, 8] >= 3) & (rows[:, 1] > 0.3)).astype(np.int64)


def main() -> None:
    """Fit everything on the same rows, and write a table of the accuracies."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    lines = [
        "| rows | wrong labels | without | with a wide forest | time | forest | boosting |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    fewest = committee._FEWEST_OF_WIDE
    test, right = make_rows(3000, 100)
    for size in (1500, 4000):
        for rate in (0.0, 0.2, 0.4):
            rows, labels = make_rows(size, 1)
            given = corrupt(labels, symmetric_matrix(3, rate), seed=0).noisy
            found, seconds = [], []
            for least in (size + 1, fewest):
                committee._FEWEST_OF_WIDE = least
                started = time.process_time()
                found.append(RobustClassifier(random_state=0).fit(rows, given).predict(test))
                seconds.append(time.process_time() - started)
            for rival in (RandomForestClassifier, HistGradientBoostingClassifier):
                found.append(rival(random_state=0).fit(rows, given).predict(test))
            blend, wide, *rivals = (f"{100 * np.mean(each == right):.1f}" for each in found)
            ratio = f"x {seconds[1] / seconds[0]:.2f}"
            lines.append(f"| {size:,} | {rate:.0%} | {' | '.join([blend, wide, ratio, *rivals])} |")
            print(lines[-1], flush=True)
    options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
