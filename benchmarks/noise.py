"""How fast labels are corrupted: against numpy's own uniform doubles, one a label.

Every line is a ratio to `generator.random(N)` measured in the same run on the same machine, which
no draw that uses one double a label can beat. Beyond it a draw reads the labels, looks into a table
and writes. Exact counts have to sort the doubles, which is what they cost.

    python benchmarks/noise.py                  # ten million labels
    python benchmarks/noise.py --labels 50000   # a small training set

Time is the best of the repetitions, each on labels in random order; one core is used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from labelproof.noise import corrupt, pair_matrix, symmetric_matrix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=10_000_000, help="number of labels")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    count = options.labels
    generator = np.random.Generator(np.random.PCG64(0))
    yardstick = best_time(lambda: generator.random(count), options.repetitions)
    print(f"{count:,} labels\n")
    print("| what | seconds | / uniform doubles |")
    print("|---|---:|---:|")
    print(f"| uniform doubles | {yardstick:.3f} | 1.0 |")
    few, many = (generator.integers(0, classes, count) for classes in (10, 100))
    cases = {
        "symmetric 0.4, 10 classes": lambda: corrupt(few, symmetric_matrix(10, 0.4), seed=1),
        "symmetric 0.4, 100 classes": lambda: corrupt(many, symmetric_matrix(100, 0.4), seed=1),
        "pair 0.4, 10 classes": lambda: corrupt(few, pair_matrix(10, 0.4), seed=1),
        "symmetric 0.4, 10 classes, exact": lambda: corrupt(
            few, symmetric_matrix(10, 0.4), seed=1, exact=True
        ),
    }
    for name, function in cases.items():
        seconds = best_time(function, options.repetitions)
        print(f"| {name} | {seconds:.3f} | {seconds / yardstick:.1f} |")


def best_time(function: Callable[[], object], repetitions: int) -> float:
    """The shortest of several runs: what else the machine does only ever adds."""
    found = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    main()
