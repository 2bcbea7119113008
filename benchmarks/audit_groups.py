"""What it is worth to say which rows belong together.

    python benchmarks/audit_groups.py

Made tables of patients with five rows each, which are more or less alike; 15% of the patients are
labelled wrongly in all of their rows. Each table is audited and fitted, with the column of patients
left out and with `--group`. Then the planted mistakes are counted among the suspects, and what the
fit says of the rows that it held out is compared with what it comes to on 400 other patients, who
are labelled wrongly as often. Four tables of each kind.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.training.files import write_text
from labelproof.training.record import versions

RESULTS = Path(__file__).parent / "results"
PATIENTS, OTHERS, ROWS, FEATURES = 120, 400, 5, 12
SEEDS = range(4)
SPREADS = {"nearly the same": 0.15, "alike": 0.5, "hardly alike": 1.5}
"""Deviation of a patient's rows from each other; patients differ from each other by 1.5."""
WAYS = {"as rows of their own": ("--drop", "patient"), "`--group patient`": ("--group", "patient")}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["measure", "table"], default="measure")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    numbers = options.output / "audit-groups.json"
    if options.what == "measure":
        content = {"sets": measure(), "versions": versions(torch.device("cpu"))}
        write_text(numbers, json.dumps(content, indent=1) + "\n")
    write_text(numbers.with_suffix(".md"), table(json.loads(numbers.read_text())))


def measure() -> list[dict[str, Any]]:
    """Audit and fit every table in both ways."""
    found = []
    for name, spread in SPREADS.items():
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                wrong = write(folder, spread=spread, seed=seed)
                for way, flags in WAYS.items():
                    entry = {"rows": name, "seed": seed, "way": way, "mistakes": int(wrong.sum())}
                    found.append(entry | audit(folder, flags, wrong) | fit(folder, flags))
                    print(json.dumps(found[-1]), flush=True)
    return found


def write(folder: Path, *, spread: float, seed: int) -> NDArray[np.bool_]:
    """A table to learn from and one of other patients; which rows of the first are wrong."""
    generator = np.random.default_rng(seed)
    direction = generator.normal(size=FEATURES)
    planted = np.zeros(0, np.bool_)
    for name, patients in (("new.csv", OTHERS), ("table.csv", PATIENTS)):
        centres = generator.normal(0, 1.5, (patients, FEATURES))
        ill = (centres @ direction > 0).repeat(ROWS)
        planted = (generator.random(patients) < 0.15).repeat(ROWS)
        features = centres.repeat(ROWS, axis=0)
        features += generator.normal(0, spread, features.shape)
        lines = [",".join([*(f"v{number}" for number in range(FEATURES)), "patient", "label"])]
        for row, values in enumerate(features):
            label = "ill" if ill[row] != planted[row] else "well"
            cells = [*(f"{value:.4f}" for value in values), f"P{row // ROWS}", label]
            lines.append(",".join(cells))
        (folder / name).write_text("\n".join(lines) + "\n")
    return planted


def run(folder: Path, *arguments: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "labelproof", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def audit(folder: Path, flags: Sequence[str], wrong: NDArray[np.bool_]) -> dict[str, Any]:
    """What the audit finds."""
    run(folder, "audit", "table.csv", *flags, "--device", "cpu", "--fresh", "--output", "audit")
    values = json.loads((folder / "audit" / "audit.json").read_text())
    with (folder / "audit" / "suspects.csv").open(newline="") as stream:
        suspects = [int(row["sample"].split()[-1]) - 2 for row in csv.DictReader(stream)]
    return {
        "rate": values["noise_rate"],
        "suspects": len(suspects),
        "right": int(wrong[suspects].sum()),
    }


def fit(folder: Path, flags: Sequence[str]) -> dict[str, Any]:
    """What the fit says of itself, and what it comes to on other patients; in percent."""
    common = ("--device", "cpu", "--fresh", "--no-audit", "--output", "run")
    run(folder, "fit", "table.csv", *flags, *common)
    curve = json.loads((folder / "run" / "record.json").read_text())["curve"]
    measured = json.loads(run(folder, "evaluate", "run", "--data", "new.csv", "--format", "json"))
    return {"held_out": curve["validation_accuracy"][-1], "new": measured["accuracy"]}


def table(content: dict[str, Any]) -> str:
    """The numbers as Markdown: sums and means over the tables of a kind."""
    lines = [
        "| a patient's rows | cut | wrong | found | of the suspects wrong | rate off by "
        "| predicted of what was held out | of other patients |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in SPREADS:
        for way in WAYS:
            sets = [e for e in content["sets"] if (e["rows"], e["way"]) == (name, way)]
            mistakes, suspects, right = (
                sum(entry[key] for entry in sets) for key in ("mistakes", "suspects", "right")
            )
            total = len(sets) * PATIENTS * ROWS
            off = [abs(e["rate"]["value"] - e["mistakes"] / (PATIENTS * ROWS)) for e in sets]
            cells = [
                name if way == next(iter(WAYS)) else "",
                way,
                f"{mistakes / total:.1%}",
                f"{right / mistakes:.0%}",
                f"{right / max(suspects, 1):.0%}",
                f"{np.mean(off):.1%}",
                f"{np.mean([entry['held_out'] for entry in sets]):.0f}%",
                f"{np.mean([entry['new'] for entry in sets]):.0f}%",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    found = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return "\n".join(lines) + f"\n\nMeasured with {found}.\n"


if __name__ == "__main__":
    main()
