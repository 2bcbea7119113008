"""The demo's page: the finding in words, the table, curves, and what the network sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelproof.experiments.demo import Row, rows
from labelproof.report.figures import Curve, Scatter, draw_curves, draw_scatters
from labelproof.report.page import write_page
from labelproof.training.record import RunRecord

__all__ = ["finding", "gains", "write_demo_page"]

SUFFIX = "+SR"
ENOUGH_EPOCHS = 20


@dataclass(frozen=True)
class TableRow:
    """A row as the page shows it."""

    row: Row
    gain: float | None


def write_demo_page(path: Path, records: Sequence[RunRecord], *, folder: Path) -> Path:
    """Write the page from the records of finished runs.

    Args:
        path: Where the page goes; it needs nothing beside it.
        records: At least one.
        folder: Where the runs' directories are, for the features.
    """
    configuration = records[0].configuration
    return write_page(
        path,
        "demo.html",
        title=f"Digits with wrong labels ({configuration['noise']})",
        finding=finding(records),
        table=gains(rows(records)),
        accuracy=_curves(records, "test_accuracy", "Test accuracy (%), clean labels", (0, 101)),
        sparse=_curves(records, "sparse_rate", "Sparse rate of the training outputs", (0, 1.01)),
        embedding=_embedding(records, folder),
        configuration={k: v for k, v in configuration.items() if k not in ("method", "loss")},
        versions=records[0].versions,
        seeds=sorted({int(record.configuration["seed"]) for record in records}),
        seconds=sum(record.seconds for record in records),
        command=_command(records),
        fell=_fell(records),
    )


def _command(records: Sequence[RunRecord]) -> str:
    configuration = records[0].configuration
    seeds = sorted({int(record.configuration["seed"]) for record in records})
    return (
        f"labelproof demo --noise {configuration['noise']} --epochs {configuration['epochs']} "
        f"--seeds {','.join(str(seed) for seed in seeds)}"
    )


def _fell(records: Sequence[RunRecord]) -> bool:
    """Whether every plain loss ends below its best epoch, which is what memorising looks like."""
    plain = [r.curve["test_accuracy"] for r in records if _base(r.configuration["method"]) is None]
    return bool(plain) and all(curve[-1] < max(curve) - 5 for curve in plain)


def gains(table: Sequence[Row]) -> list[TableRow]:
    """Each row with its gain over the same loss without regularization, where that is there."""
    means = {row.method: row.mean for row in table}
    return [
        TableRow(row, row.mean - means[base] if (base := _base(row.method)) in means else None)
        for row in table
    ]


def finding(records: Sequence[RunRecord]) -> str:
    """What came out, in one or two sentences."""
    compared = [entry for entry in gains(rows(records)) if entry.gain is not None]
    rate = float(np.mean([record.noise_rate for record in records]))
    opening = f"{100 * rate:.0f}% of the training labels are wrong."
    if not compared:
        return opening
    best = max(compared, key=lambda entry: entry.row.mean)
    gain = [entry.gain for entry in compared if entry.gain is not None]
    epochs = int(records[0].configuration["epochs"])
    early = (
        f" {epochs} epochs are too few to judge: wrong labels are memorised later, from about the "
        "tenth epoch on."
        if epochs < ENOUGH_EPOCHS
        else ""
    )
    base = best.row.mean - (best.gain or 0)
    spread = f"{min(gain):+.1f} to {max(gain):+.1f}" if len(gain) > 1 else f"{gain[0]:+.1f}"
    return (
        f"{opening} {_base(best.row.method)} ends at {base:.1f}% on clean test images, "
        f"{best.row.method} at {best.row.mean:.1f}%. What sparse regularization did for the losses "
        f"it was put on: {spread} points.{early}"
    )


def _base(method: str) -> str | None:
    return method.removesuffix(SUFFIX) if method.endswith(SUFFIX) else None


def _curves(
    records: Sequence[RunRecord], metric: str, title: str, limits: tuple[float, float]
) -> str:
    methods = list(dict.fromkeys(str(record.configuration["method"]) for record in records))
    families = list(dict.fromkeys(_base(method) or method for method in methods))
    curves = [
        Curve(
            label=method,
            seeds=[r.curve[metric] for r in records if r.configuration["method"] == method],
            color=families.index(_base(method) or method),
            dashed=_base(method) is None,
        )
        for method in methods
    ]
    return draw_curves(curves, title=title, limits=limits)


def _embedding(records: Sequence[RunRecord], folder: Path) -> str:
    # Imported here: scikit-learn takes a second, and most commands do not need it.
    from sklearn.manifold import TSNE

    first = min(int(record.configuration["seed"]) for record in records)
    scatters = []
    chosen = [record for record in records if record.configuration["seed"] == first]
    # Plain losses in one row and their regularised forms below them.
    chosen.sort(key=lambda record: _base(str(record.configuration["method"])) is not None)
    for record in chosen:
        # Arrays only: a pickle in the archive is refused, since it could run code.
        with np.load(folder / record.name / "predictions.npz", allow_pickle=False) as arrays:
            features, labels = arrays["features"].astype(np.float32), arrays["labels"]
        points = TSNE(init="pca", random_state=0, max_iter=500).fit_transform(features)
        title = f"{record.configuration['method']} ({record.final_accuracy:.1f}%)"
        scatters.append(Scatter(title, points, labels))
    names = [str(label) for label in range(10)]
    title = "Features of the test images (t-SNE)"
    columns = max(1, -(-len(scatters) // 2))
    return draw_scatters(scatters, title=title, class_names=names, columns=columns)
