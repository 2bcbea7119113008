"""Which loss is best for small grey images in few epochs, by held-out noisy labels.

    python benchmarks/short_runs.py --data-root DIR --output benchmarks/results/short-runs.json

`labelproof.fit` trains on the first images of MNIST with symmetric noise, on a CPU. The choice is
by the held-out labels, which are as noisy as the others; test accuracy stands beside it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import labelproof
from labelproof.data import load_dataset
from labelproof.noise import corrupt, symmetric_matrix

LOSSES = ("ce+sr", "gce(q=0.7)")


def main() -> None:
    """Train, and write the numbers and their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--network", default="cnn4(width=8)")
    parser.add_argument("--epochs", type=int, nargs="+", default=[3, 5, 10, 20, 40])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.2, 0.4])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    dataset = load_dataset("mnist", root=options.data_root)
    images = dataset.train.array[: options.images]
    labels, tested = dataset.train.labels[: options.images], dataset.test
    rows = []
    for rate in options.rates:
        noisy = corrupt(labels, symmetric_matrix(10, rate), seed=0).noisy
        for epochs in options.epochs:
            for loss in LOSSES:
                run = labelproof.fit(
                    (images, noisy),
                    loss=loss,
                    epochs=epochs,
                    network=options.network,
                    device="cpu",
                    audit=False,
                )
                right = run.predict(tested.array)["label"].to_numpy() == tested.labels
                held = run.metrics["validation_accuracy"].iloc[-1]
                accuracy = {"held_out": float(held), "test": 100 * float(np.mean(right))}
                rows.append({"rate": rate, "epochs": epochs, "loss": loss, **accuracy})
                print(rows[-1], flush=True)
    options.output.write_text(json.dumps(rows, indent=1) + "\n")
    options.output.with_suffix(".md").write_text(table(rows))


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each rate and number of epochs: held-out agreement and test accuracy."""
    lines = [
        "| wrong labels | epochs | " + " | ".join(f"`{loss}`" for loss in LOSSES) + " |",
        "|---:|---:" + "|---:" * len(LOSSES) + "|",
    ]
    cells: dict[tuple[float, int], list[str]] = {}
    for row in rows:
        cell = f"{row['held_out']:.1f} ({row['test']:.1f})"
        cells.setdefault((row["rate"], row["epochs"]), []).append(cell)
    for (rate, epochs), found in cells.items():
        lines.append(f"| {rate:.0%} | {epochs} | {' | '.join(found)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
