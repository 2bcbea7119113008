"""How fast the penalty's weight should grow in runs of other lengths than the paper's 120 epochs.

    python benchmarks/growth.py --output benchmarks/results/growth.json

Scikit-learn's digits with 40% wrong labels and the network that `labelproof train` chooses for
them, three seeds. Either the weight grows 35-fold whatever the number of epochs, as in the paper's
120, or by the paper's 3% in each epoch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

import labelproof

GROWTHS = {"35-fold in all": lambda epochs: 35 ** (1 / epochs), "3% in each epoch": lambda _: 1.03}


def main() -> None:
    """Train, and write the numbers and their table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, nargs="+", default=[25, 50, 100, 200, 400])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    rows = []
    for epochs in options.epochs:
        for name, growth in GROWTHS.items():
            for seed in options.seeds:
                rows.append(
                    {"epochs": epochs, "growth": name, **train(epochs, growth(epochs), seed)}
                )
                print(rows[-1], flush=True)
    options.output.write_text(json.dumps(rows, indent=1) + "\n")
    options.output.with_suffix(".md").write_text(table(rows))


def train(epochs: int, growth: float, seed: int) -> dict[str, Any]:
    """Test accuracy and the share of memorised wrong labels after the last epoch."""
    with tempfile.TemporaryDirectory() as folder:
        run = labelproof.train(
            labelproof.Configuration(
                "digits",
                noise="symmetric:0.4",
                loss=f"ce+sr(rho={growth:.6g})",
                network="cnn4(width=12)",
                epochs=epochs,
                seed=seed,
            ),
            output=Path(folder) / "run",
            device="cpu",
            progress=False,
        )
        last = run.metrics.iloc[-1]
    names = {"accuracy": "test_accuracy", "memorised": "wrong_fitted"}
    return {"seed": seed} | {name: float(last[metric]) for name, metric in names.items()}


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each number of epochs: mean accuracy, and the memorised share of wrong labels."""
    lines = ["| epochs | " + " | ".join(GROWTHS) + " |", "|---:" * (1 + len(GROWTHS)) + "|"]
    for epochs in dict.fromkeys(row["epochs"] for row in rows):
        cells = []
        for name in GROWTHS:
            found = [row for row in rows if (row["epochs"], row["growth"]) == (epochs, name)]
            accuracy, memorised = (
                fmean(row[key] for row in found) for key in ("accuracy", "memorised")
            )
            cells.append(f"{accuracy:.1f} ({100 * memorised:.0f}%)")
        lines.append(f"| {epochs} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
