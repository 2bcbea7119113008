"""Do the intervals of an audit hold? Simulated predictions and labels whose noise is known.

    python benchmarks/audit_coverage.py --workers 14     # about ten minutes on 14 cores
    python benchmarks/audit_coverage.py --largest 10000 --share 0.1
    python benchmarks/audit_coverage.py table

Logits are the true class and normal noise, turned into the exact posterior: the model of the audit
is then right. `twice as confident` multiplies them by 2. `biased` adds a normal number for each
class, of deviation 0.3, which no temperature can undo. A fifth of all labels is wrong: any other
class (symmetric), or the next one (asymmetric). An interval of 95% holds the truth in .90 to .99 of
cases if it is honest and no wider than it has to be.

Results are written as they come, and runs that are there are not repeated: to measure again, delete
`results/audit-coverage.json`. Each worker is a process with one thread and at most 2 GB.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.audit import audit_logits

RESULTS = Path(__file__).parent / "results" / "audit-coverage.json"
REPETITIONS = {1_000: 100, 10_000: 50, 100_000: 30, 1_000_000: 10}
CLASSES = (3, 10, 50, 100)
KINDS = ("symmetric", "asymmetric")
MODELS = ("calibrated", "twice as confident", "biased")
RATE = 0.2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["measure", "table"], default="measure")
    parser.add_argument("--largest", type=int, default=max(REPETITIONS))
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.what == "measure":
        measure(options.largest, options.share, options.workers)
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")


def measure(largest: int, share: float, workers: int) -> None:
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    names = ("samples", "classes", "kind", "model", "seed")
    done = {tuple(entry[name] for name in names) for entry in found}
    before = len(found)
    # The longest first, so that no worker is left with one of them at the end.
    wanted = [
        (samples, classes, kind, model, seed)
        for samples, classes, kind, model in product(
            sorted(REPETITIONS, reverse=True), CLASSES[::-1], KINDS, MODELS
        )
        for seed in range(max(round(share * REPETITIONS[samples] / max(classes / 25, 1)), 1))
        if samples <= largest
    ]
    os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run, *each): each for each in wanted if each not in done}
        for future in as_completed(running):
            found.append(dict(zip(names, running[future], strict=True)) | future.result())
            print(f"{len(found) - before} of {len(running)}", json.dumps(found[-1]), flush=True)
            RESULTS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


def run(samples: int, classes: int, kind: str, model: str, seed: int) -> dict[str, Any]:
    return judge(*simulate(samples, classes, kind, model, seed))


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
        "width of the diagonal": round(float((high - low)[diagonal].mean()), 5),
        "wrong": round(float((given != true).mean()), 5),
        "accuracy": round(float((logits.argmax(axis=1) == true).mean()), 4),
        "seconds": round(seconds, 2),
    }


def _mean(held: NDArray[np.bool_]) -> float | None:
    return round(float(held.mean()), 4) if held.size else None


def table(content: list[dict[str, Any]]) -> str:
    """How often 95% intervals hold the truth, as Markdown: by size, then by noise and model."""
    frame = pd.DataFrame(content)
    heads = "diagonal | noise | zeros | rate | width of the diagonal's | of the rate's | runs |"
    parts = []
    for keys in (["samples", "classes"], ["kind", "model"]):
        first = {"samples": "labels", "kind": "noise", "model": "predictions"}
        names = [first.get(key, key) for key in keys]
        lines = [f"| {' | '.join(names)} | {heads}", "|---:|---:|" + "---:|" * 7]
        for _, rows in frame.groupby(keys):
            cells = [key if isinstance(key, str) else f"{key:,}" for key in rows[keys].iloc[0]]
            for name in ("diagonal", "noise", "zero", "rate"):
                mean = rows[name].astype(float).mean()
                cells.append("–" if np.isnan(mean) else f"{mean:.2f}")
            cells += [f"{rows[name].mean():.1%}" for name in ("width of the diagonal", "width")]
            lines.append(f"| {' | '.join([*cells, f'{len(rows):,}'])} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
