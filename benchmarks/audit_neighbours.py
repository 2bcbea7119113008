"""How well planted near duplicates and outliers are found, beside cleanlab's Datalab.

    python -m venv rival && rival/bin/pip install "cleanlab[datalab]==2.9.0"
    python benchmarks/audit_neighbours.py --rival rival/bin/python --images DATA

Tables: one row in fifty becomes a copy of another one with normal noise of a hundredth of each
feature's deviation. One in fifty becomes an outlier: half of them are normal with three times the
deviation of each feature, half uniform over its range, which no row need be like.

Images (MNIST and CIFAR-100 in the folder DATA, as `load_dataset` keeps them): one in fifty becomes
a copy of another one, brighter by a twentieth, shifted by one pixel, or through JPEG at quality 75.
In other runs one in two hundred becomes an outlier: uniform noise, or an image of the other
dataset.

Both tools get the same features: standardised rows; of images, small copies to find duplicates, and
statistics to find outliers. What was there before counts as wrongly found, so precision is a lower
bound. Statistics and thresholds were chosen on other images (CIFAR-10, later ones of MNIST).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import product
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
    parser.add_argument("--folder", type=Path, help="of the planted samples")
    parser.add_argument("--images", type=Path, help="folder of MNIST and CIFAR-100")
    options = parser.parse_args(arguments)
    if options.what == "datalab":
        datalab(options.folder)
        return
    if options.what == "measure":
        RESULTS.write_text(
            json.dumps(measure(options.rival, options.images), indent=1) + "\n", encoding="utf-8"
        )
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")


def measure(rival: Path, images: Path) -> list[dict[str, Any]]:
    from labelproof.audit.samples import features_of
    from labelproof.data.dataset import Split

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        samples = {table: planted(rows[:ROWS]) for table, rows in tables()}
        for (title, kind), found in planted_images(images).items():
            samples[f"{title}, {kind}"] = found
        for title, found in samples.items():
            array = found.pop("samples")
            split = Split(array, np.zeros(len(array), np.int64))
            features = features_of(split, np.arange(len(array)))
            assert features is not None
            kept = {k: v for k, v in features._asdict().items() if v is not None} | found
            np.savez(folder / f"{title}.npz", allow_pickle=False, **kept)
        # Without this Python's packages: the rival has its own.
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([rival, __file__, "datalab", "--folder", folder], check=True, env=own)
        return [entry for title in samples for entry in judge(folder / f"{title}.npz")]


def planted_images(folder: Path) -> dict[tuple[str, str], dict[str, NDArray[Any]]]:
    """Images with copies or outliers among them, by dataset and kind."""
    from labelproof.data import load_dataset

    kept = {
        name: np.asarray(load_dataset(name, root=folder).train.images)[:ROWS]
        for name in ("mnist", "cifar100")
    }
    # Of the same form: MNIST with a border and three times the same channel.
    wide = np.pad(kept["mnist"], ((0, 0), (0, 0), (2, 2), (2, 2))).repeat(3, axis=1)
    grey = kept["cifar100"].mean(axis=1, keepdims=True)[:, :, 2:-2, 2:-2].astype(np.uint8)
    foreign = {"MNIST": grey, "CIFAR-100": wide}
    found = {}
    for title, images in (("MNIST", kept["mnist"]), ("CIFAR-100", kept["cifar100"])):
        for kind in ("brighter", "shifted", "JPEG", "noise", "of the other dataset"):
            generator, numbers = np.random.default_rng(0), np.arange(len(images))
            copied, changed = generator.permutation(len(images))[: len(images) // 25].reshape(2, -1)
            if kind == "noise":
                changed = changed[::4]
                new = generator.integers(256, size=images[changed].shape, dtype=np.uint8)
            elif kind == "of the other dataset":
                changed = changed[::4]
                new = foreign[title][changed]
            else:
                new = np.stack([_copy(image, kind) for image in images[copied]])
            samples = images.copy()
            samples[changed] = new
            outlier = kind in ("noise", "of the other dataset")
            planted = np.isin(numbers, changed if outlier else [copied, changed])
            found[title, kind] = {
                "samples": samples,
                "outlier" if outlier else "duplicate": planted,
            }
    return found


def _copy(image: NDArray[np.uint8], kind: str) -> NDArray[np.uint8]:
    if kind == "brighter":
        return np.clip(image * 1.05, 0, 255).astype(np.uint8)
    if kind == "shifted":
        return np.pad(image, ((0, 0), (0, 0), (1, 0)), mode="edge")[:, :, :-1]
    # Not above: the rival's Python need not have it.
    from PIL import Image

    file = BytesIO()
    Image.fromarray(image.transpose(1, 2, 0).squeeze()).save(file, "JPEG", quality=75)
    array = np.asarray(Image.open(file))
    return array.reshape(*array.shape[:2], -1).transpose(2, 0, 1)


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
        "samples": rows.astype(np.float32),
        "duplicate": np.isin(numbers, [copied, copy]),
        "outlier": np.isin(numbers, np.concatenate([wide, uniform])),
    }


def datalab(folder: Path) -> None:
    """What Datalab finds, by a Python that has it and no labelproof."""
    from cleanlab import Datalab  # pyright: ignore[reportMissingImports]

    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as arrays:
            kept = dict(arrays)
        for what, issue, features in (
            ("duplicate", "near_duplicate", kept["copies"]),
            ("outlier", "outlier", kept.get("kinds", kept["copies"])),
        ):
            lab = Datalab(data={"number": np.arange(len(features))}, verbosity=0)
            lab.find_issues(features=features, issue_types={issue: {}})
            kept[f"datalab_{what}"] = lab.issues[f"is_{issue}_issue"].to_numpy()
        np.savez(path, allow_pickle=False, **kept)


def judge(path: Path) -> Iterator[dict[str, Any]]:
    from labelproof.audit.samples import Features, find_neighbours

    with np.load(path) as kept:
        found = find_neighbours(Features(kept["copies"], float(kept["near"]), kept.get("kinds")))
        audit = {"duplicate": found.duplicate_of >= 0, "outlier": found.outlier}
        for what in {"duplicate", "outlier"}.intersection(kept.files):
            entry: dict[str, Any] = {"table": path.stem, "what": what}
            for who, flagged in (("audit", audit[what]), ("datalab", kept[f"datalab_{what}"])):
                right = int((flagged & kept[what]).sum())
                entry[who] = [right, int(flagged.sum()), int(kept[what].sum())]
            yield entry


def table(content: list[dict[str, Any]]) -> str:
    """Which share is found, and which share of what is flagged was planted, as Markdown."""
    lines = [
        "| planted | samples | found by the audit | its precision | by Datalab | its precision |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for what, images in product(("duplicate", "outlier"), (False, True)):
        entries = [
            entry
            for entry in content
            if entry["what"] == what and entry["table"].startswith(("MNIST", "CIFAR")) == images
        ]
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
