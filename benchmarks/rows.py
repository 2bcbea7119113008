"""How fast a table's rows are learned from on a CPU, beside scikit-learn's own network.

The yardstick is `MLPClassifier((100,), batch_size=200, solver="adam")`. Ours is the same network,
batch and rule (`mlp(hidden=100,depth=1)`, `adamw`), with cross entropy and with the robust losses,
which cost more than cross entropy: sharpening and the penalty take both passes through a softmax.

    python benchmarks/rows.py                     # 100,000 rows of 50 numbers, 10 classes
    python benchmarks/rows.py --rows 20000        # a minute on a slow machine

All are trained in one process on one core and take turns, an epoch each; before a ratio is taken
every one has had an epoch to warm up. A time is the processor's, not the clock's, so that whatever
else the machine does is not counted, and a ratio is the median over the turns of both times of a
turn. An epoch is all that a user waits for: the order of the examples, the steps, what is counted
for the log, and reading it.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from labelproof.data.dataset import Dataset, Split
from labelproof.training import Configuration, Examples, Execution
from labelproof.training.batches import ResidentInputs
from labelproof.training.trainer import Trainer

CLASSES = 10
BATCH = 200
YARDSTICK = "scikit-learn, cross entropy"
LOSSES = ("ce", "gce(q=0.7)", "ce+sr", "gce(q=0.01)+sr")
CPU = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an epoch at a time never converges
        turns = measure(*make_rows(options.rows, options.columns), options.turns)
    print(f"{options.rows:,} rows of {options.columns} numbers, {CLASSES} classes, one core\n")
    print(write_table(turns, -(-options.rows // BATCH)))


def measure(
    rows: NDArray[np.float32], labels: NDArray[np.int64], turns: int
) -> dict[str, list[float]]:
    """Seconds of each one's epochs, turn by turn."""
    epochs = make_epochs(rows, labels)
    for epoch in epochs.values():
        epoch()
    found: dict[str, list[float]] = {name: [] for name in epochs}
    for _ in range(turns):
        for name, epoch in epochs.items():
            start = time.process_time()
            epoch()
            found[name].append(time.process_time() - start)
    return found


def make_epochs(
    rows: NDArray[np.float32], labels: NDArray[np.int64]
) -> dict[str, Callable[[], object]]:
    """What trains for one more epoch, by name."""
    theirs = MLPClassifier(
        (100,),
        batch_size=BATCH,  # pyright: ignore[reportArgumentType] (or "auto", it says)
        solver="adam",
        max_iter=1,
        warm_start=True,
        random_state=0,
    )
    dataset = Dataset(
        "rows",
        {"train": Split(rows, labels)},
        tuple(str(label) for label in range(CLASSES)),
        tuple(rows.mean(axis=0).tolist()),
        tuple(rows.std(axis=0).tolist()),
        clean=False,
    )
    resident = ResidentInputs(dataset, CPU)
    epochs: dict[str, Callable[[], object]] = {YARDSTICK: lambda: theirs.fit(rows, labels)}
    for loss in LOSSES:
        configuration = Configuration(
            "rows",
            loss=loss,
            network="mlp(hidden=100,depth=1)",
            epochs=1000,
            batch_size=BATCH,
            optimizer="adamw",
            learning_rate=1e-3,
            clip_norm=0.0,
        )
        examples = Examples(dataset, np.arange(len(rows)), labels, None, 0.0)
        run = Trainer(configuration, examples, resident, Execution(CPU))
        epochs[loss] = lambda run=run: train_epoch(run)
    return epochs


def train_epoch(run: Trainer) -> dict[str, float]:
    run.begin()
    while not run.advance():
        pass
    return run.collect(run.end())


def make_rows(count: int, columns: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    draws = np.random.default_rng(0)
    rows = draws.normal(size=(count, columns)).astype(np.float32)
    return rows, (rows @ draws.normal(size=(columns, CLASSES))).argmax(axis=1)


def write_table(turns: dict[str, list[float]], steps: int) -> str:
    """Times and ratios, in Markdown."""
    lines = ["| what | µs a step | / scikit-learn |", "|---|---:|---:|"]
    for name, seconds in turns.items():
        pairs = zip(seconds, turns[YARDSTICK], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        step = statistics.median(seconds) / steps * 1e6
        lines.append(f"| {name} | {step:.0f} | {ratio:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
