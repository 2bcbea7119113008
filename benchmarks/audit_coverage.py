"""Do the intervals of an audit hold? Simulated predictions and labels whose noise is known.

    python benchmarks/audit_coverage.py            # about half an hour on one core
    python benchmarks/audit_coverage.py --largest 100000

Logits are the true class and normal noise, turned into the exact posterior: the model of the audit
is then right. `twice as confident` multiplies them by 2. `biased` adds a normal number for each
class, of deviation 0.3, which no temperature can undo. A fifth of all labels is wrong: any other
class (symmetric), or the next one (asymmetric). An interval of 95% holds the truth in .90 to .99 of
cases if it is honest and no wider than it has to be.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.audit import audit_logits

RESULTS = Path(__file__).parent / "results" / "audit-coverage.json"
REPETITIONS = {1_000: 20, 10_000: 8, 100_000: 2, 1_000_000: 1}
CLASSES = (3, 10, 50, 100)
KINDS = ("symmetric", "asymmetric")
MODELS = ("calibrated", "twice as confident", "biased")
RATE = 0.2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["measure", "table"], default="measure")
    parser.add_argument("--largest", type=int, default=max(REPETITIONS))
    options = parser.parse_args(arguments)
    if options.what == "measure":
        RESULTS.write_text(json.dumps(measure(options.largest), indent=0) + "\n", encoding="utf-8")
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")


def measure(largest: int) -> list[dict[str, Any]]:
    found = []
    for samples, classes, kind, model in product(REPETITIONS, CLASSES, KINDS, MODELS):
        if samples > largest:
            continue
        # Fewer of those that take long.
        repetitions = max(REPETITIONS[samples] * 10 // max(classes, 10), 1)
        for seed in range(repetitions):
            entry = {"samples": samples, "classes": classes, "kind": kind, "model": model}
            found.append(entry | judge(*simulate(samples, classes, kind, model, seed)))
        print(json.dumps(found[-1]), flush=True)
    return found


def simulate(
    samples: int, classes: int, kind: str, model: str, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Logits, given and true labels, and the matrix."""
    generator = np.random.default_rng(seed)
    true = generator.integers(classes, size=samples)
    scale, deviation = 4.0, 1.5
    logits = generator.standard_normal((samples, classes), dtype=np.float32)
    logits *= np.float32(deviation)
    logits[np.arange(samples), true] += scale
    logits *= np.float32(scale / deviation**2 * (2 if model == "twice as confident" else 1))
    if model == "biased":
        logits += generator.normal(0, 0.3, classes).astype(np.float32)
    more = generator.integers(1, classes, samples) if kind == "symmetric" else 1
    given = np.where(generator.random(samples) < RATE, (true + more) % classes, true)
    if kind == "symmetric":
        matrix = np.full((classes, classes), RATE / (classes - 1))
        np.fill_diagonal(matrix, 1 - RATE)
    else:
        matrix = (1 - RATE) * np.eye(classes) + RATE * np.roll(np.eye(classes), 1, axis=1)
    return logits, given, true, matrix


def judge(
    logits: NDArray[np.float32],
    given: NDArray[np.int64],
    true: NDArray[np.int64],
    matrix: NDArray[np.float64],
) -> dict[str, Any]:
    """Which intervals hold the truth."""
    started = time.perf_counter()
    found = audit_logits(logits, given)
    seconds = time.perf_counter() - started
    low, high, rate = found.transition_low, found.transition_high, found.noise_rate
    held = (low <= matrix) & (matrix <= high)
    diagonal = np.eye(len(matrix), dtype=np.bool_)
    return {
        "diagonal": _mean(held[diagonal]),
        "noise": _mean(held[(matrix > 0) & ~diagonal]),
        "zero": _mean(held[matrix == 0]),
        "rate": bool(rate.low <= RATE <= rate.high),
        "estimate": round(rate.value, 5),
        "width": round(rate.high - rate.low, 5),
        "wrong": round(float((given != true).mean()), 5),
        "accuracy": round(float((logits.argmax(axis=1) == true).mean()), 4),
        "seconds": round(seconds, 2),
    }


def _mean(held: NDArray[np.bool_]) -> float | None:
    return round(float(held.mean()), 4) if held.size else None


def table(content: list[dict[str, Any]]) -> str:
    """How often 95% intervals hold, as Markdown; kinds of noise and of predictions in one mean."""
    names = ["diagonal", "noise", "zero", "rate"]
    lines = [
        "| labels | classes | diagonal | noise | zeros | rate | width of its interval | runs |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for values, rows in pd.DataFrame(content).groupby(["samples", "classes"], sort=False):
        samples, classes = values  # pyright: ignore[reportGeneralTypeIssues]
        cells = [f"{rows[name].astype(float).mean():.2f}" for name in names]
        width = f"{rows['width'].mean():.1%} | {len(rows)}"
        lines.append(f"| {samples:,} | {classes} | {' | '.join(cells)} | {width} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
