"""How well planted near duplicates and outliers are found in tables, beside cleanlab's Datalab.

    python -m venv rival && rival/bin/pip install "cleanlab[datalab]==2.9.0"
    python benchmarks/audit_neighbours.py --rival rival/bin/python

One row in fifty becomes a copy of another one with normal noise of a hundredth of each feature's
deviation. One in fifty becomes an outlier: half of them are normal with three times the deviation
of each feature, half uniform over its range, which no row need be like. Both tools get standardised
features. What the tables had before counts as wrongly found, so precision is a lower bound.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results" / "audit-neighbours.json"
KEEL = ("letter", "magic", "phoneme", "satimage", "segment", "spambase", "vehicle")
ROWS = 2000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=["measure", "table", "datalab"], default="measure"
    )
    parser.add_argument("--rival", type=Path, help="a Python that has cleanlab with Datalab")
    parser.add_argument("--folder", type=Path, help="of the planted tables")
    options = parser.parse_args(arguments)
    if options.what == "datalab":
        datalab(options.folder)
        return
    if options.what == "measure":
        RESULTS.write_text(json.dumps(measure(options.rival), indent=1) + "\n", encoding="utf-8")
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")


def measure(rival: Path) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table, rows in tables():
            np.savez(folder / f"{table}.npz", allow_pickle=False, **planted(rows[:ROWS]))
        subprocess.run([rival, __file__, "datalab", "--folder", folder], check=True)
        return [entry for path in sorted(folder.glob("*.npz")) for entry in judge(path)]


def tables() -> Iterator[tuple[str, NDArray[np.float64]]]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from tables_golden import keel

    shipped = {"breast cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
    for name, load in shipped.items():
        found: Any = load(return_X_y=True)
        yield name, found[0]
    for name in KEEL:
        yield name, keel(name).drop(columns="label").select_dtypes("number").to_numpy(np.float64)


def planted(rows: NDArray[np.float64], seed: int = 0) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(seed)
    rows, size, deviation = rows.copy(), max(len(rows) // 50, 4), rows.std(axis=0)
    copied, copy, wide, uniform = np.split(
        generator.permutation(len(rows))[: 3 * size], [size, 2 * size, 2 * size + size // 2]
    )
    rows[copy] = rows[copied] + generator.normal(size=(size, len(deviation))) * 0.01 * deviation
    low, high = rows.min(axis=0), rows.max(axis=0)
    rows[wide] = rows.mean(axis=0) + generator.normal(size=rows[wide].shape) * 3 * deviation
    rows[uniform] = generator.uniform(low, high, size=rows[uniform].shape)
    numbers = np.arange(len(rows))
    return {
        "rows": rows.astype(np.float32),
        "duplicate": np.isin(numbers, [copied, copy]),
        "outlier": np.isin(numbers, np.concatenate([wide, uniform])),
    }


def datalab(folder: Path) -> None:
    """What Datalab finds, by a Python that has it and no labelproof."""
    from cleanlab import Datalab  # pyright: ignore[reportMissingImports]

    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as arrays:
            kept = dict(arrays)
        rows = kept["rows"]
        scaled = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-6)
        lab = Datalab(data={"number": np.arange(len(rows))}, verbosity=0)
        lab.find_issues(features=scaled, issue_types={"near_duplicate": {}, "outlier": {}})
        kept["datalab_duplicate"] = lab.issues["is_near_duplicate_issue"].to_numpy()
        kept["datalab_outlier"] = lab.issues["is_outlier_issue"].to_numpy()
        np.savez(path, allow_pickle=False, **kept)


def judge(path: Path) -> Iterator[dict[str, Any]]:
    from labelproof.audit.neighbours import features_of, find_neighbours
    from labelproof.data.dataset import Split

    with np.load(path) as kept:
        rows = kept["rows"]
        features = features_of(Split(rows, np.zeros(len(rows), np.int64)), np.arange(len(rows)))
        assert features is not None
        found = find_neighbours(features)
        audit = {"duplicate": found.duplicate_of >= 0, "outlier": found.outlier}
        for what, said in audit.items():
            entry: dict[str, Any] = {"table": path.stem, "what": what}
            for who, flagged in (("audit", said), ("datalab", kept[f"datalab_{what}"])):
                right = int((flagged & kept[what]).sum())
                entry[who] = [right, int(flagged.sum()), int(kept[what].sum())]
            yield entry


def table(content: list[dict[str, Any]]) -> str:
    """Which share is found, and which share of what is flagged was planted, as Markdown."""
    lines = [
        "| planted | table | found by the audit | its precision | by Datalab | its precision |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for what in ("duplicate", "outlier"):
        entries = [entry for entry in content if entry["what"] == what]
        shares = np.array(
            [[*_shares(each["audit"]), *_shares(each["datalab"])] for each in entries]
        )
        names = [each["table"] for each in entries]
        for name, row in zip([*names, "**mean**"], [*shares, shares.mean(axis=0)], strict=True):
            lines.append(f"| {what} | {name} | {' | '.join(f'{share:.2f}' for share in row)} |")
    return "\n".join(lines) + "\n"


def _shares(counts: Sequence[int]) -> tuple[float, float]:
    right, flagged, planted = counts
    return right / planted, right / flagged if flagged else 1.0


if __name__ == "__main__":
    main()
