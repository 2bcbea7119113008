"""How well an audit does where a class is rare, by the loss of its networks.

    python benchmarks/audit_rare.py

Made tables of 2,000 to 4,000 rows: fraud of 2 to 10%, of which 15% are not found out, beside 1% of
the others that are taken for it; and skewed classes with one label in sixteen wrong. Each is
audited by the command, with the loss that it chooses and with three others; then the planted
mistakes are counted among the suspects, and it is asked whether the interval holds their share.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.training.files import write_text
from labelproof.training.record import versions

RESULTS = Path(__file__).parent / "results"
LOSSES = {"as chosen": (), **{text: ("--loss", text) for text in ("gce(q=0.7)", "ce", "ce+sr")}}
Made = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["measure", "table"], default="measure")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    numbers = options.output / "audit-rare.json"
    if options.what == "measure":
        content = {"sets": measure(), "versions": versions(torch.device("cpu"))}
        write_text(numbers, json.dumps(content, indent=1) + "\n")
    write_text(numbers.with_suffix(".md"), table(json.loads(numbers.read_text())))


def measure() -> list[dict[str, Any]]:
    """Audit every table with every loss."""
    found = []
    for name, make in SETS.items():
        with tempfile.TemporaryDirectory() as folder:
            given, wrong = write(make(), Path(folder) / "table.csv")
            rarest = float(np.bincount(given).min() / len(given))
            for loss, flags in LOSSES.items():
                entry = {"set": name, "rarest": rarest, "wrong": float(wrong.mean()), "loss": loss}
                found.append(entry | audit(Path(folder), flags, wrong))
                print(json.dumps(found[-1]), flush=True)
    return found


def audit(folder: Path, flags: Sequence[str], wrong: NDArray[np.bool_]) -> dict[str, Any]:
    """What the command finds in the table of a folder."""
    command = [sys.executable, "-m", "labelproof", "audit", "table.csv", "--label", "label"]
    command += ["--device", "cpu", "--fresh", "--output", "audit", *flags]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    values = json.loads((folder / "audit" / "audit.json").read_text())
    with (folder / "audit" / "suspects.csv").open(newline="") as stream:
        suspects = [int(row["sample"].split()[-1]) - 2 for row in csv.DictReader(stream)]
    return {
        "rate": values["noise_rate"],
        "suspects": len(suspects),
        "right": int(wrong[suspects].sum()),
        "trained": values["method"]["loss"],
    }


def fraud(share: float, *, apart: float, seed: int) -> Made:
    """Two classes, of which one is rare and lies apart in three of eight features."""
    generator = np.random.default_rng(seed)
    true = (generator.random(2000) < share).astype(np.int64)
    features = generator.normal(size=(2000, 8))
    features[:, :3] += apart * true[:, None]
    wrong = np.zeros(2000, dtype=np.bool_)
    for label, missed in ((0, 0.01), (1, 0.15)):
        places = np.flatnonzero(true == label)
        wrong[generator.choice(places, round(missed * len(places)), replace=False)] = True
    return features, np.where(wrong, 1 - true, true), wrong


def skewed(shares: Sequence[float], *, seed: int) -> Made:
    """Classes around points of their own, one label in sixteen another one by chance."""
    generator = np.random.default_rng(seed)
    true = generator.choice(len(shares), 4000, p=shares)
    centres = generator.normal(size=(len(shares), 8))
    centres *= 3.5 / np.linalg.norm(centres, axis=1, keepdims=True)
    features = centres[true] + generator.normal(size=(4000, 8))
    wrong = generator.random(4000) < 1 / 16
    other = (true + generator.integers(1, len(shares), 4000)) % len(shares)
    return features, np.where(wrong, other, true), wrong


def write(made: Made, path: Path) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A table of rows, the last column a label; the labels, and which are wrong."""
    features, given, wrong = made
    lines = [",".join([*(f"v{number}" for number in range(features.shape[1])), "label"])]
    for row, label in zip(features, given, strict=True):
        lines.append(",".join([*(f"{value:.4f}" for value in row), f"c{label}"]))
    path.write_text("\n".join(lines) + "\n")
    return given, wrong


SETS: dict[str, Callable[[], Made]] = {
    "fraud, 2%": lambda: fraud(0.02, apart=4, seed=3),
    "fraud, 2%, again": lambda: fraud(0.02, apart=4, seed=5),
    "fraud, 4%, less apart": lambda: fraud(0.04, apart=2, seed=6),
    "fraud, 5%": lambda: fraud(0.05, apart=4, seed=1),
    "fraud, 10%, less apart": lambda: fraud(0.1, apart=2, seed=2),
    "five classes": lambda: skewed([0.9, 0.04, 0.03, 0.02, 0.01], seed=1),
    "ten classes": lambda: skewed(
        [0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.01, 0.005, 0.003, 0.002], seed=2
    ),
}


def table(content: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = [
        "| table | rarest label | loss | wrong | estimated | holds it | suspects | of them wrong |",
        "|---|---:|---|---:|---:|---|---:|---:|",
    ]
    for entry in content["sets"]:
        rate = entry["rate"]
        first = entry["loss"] == next(iter(LOSSES))
        cells = [
            entry["set"] if first else "",
            f"{entry['rarest']:.1%}" if first else "",
            f"`{entry['trained']}`, chosen" if first else f"`{entry['loss']}`",
            f"{entry['wrong']:.2%}",
            f"{rate['value']:.1%} ({rate['low']:.1%} to {rate['high']:.1%})",
            "yes" if rate["low"] <= entry["wrong"] <= rate["high"] else "**no**",
            f"{entry['suspects']:,}",
            f"{entry['right']:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    found = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return "\n".join(lines) + f"\n\nMeasured with {found}.\n"


if __name__ == "__main__":
    main()
