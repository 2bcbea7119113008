"""The demo's page: the finding in words, the table, curves, and what the network sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
from sklearn.manifold import TSNE

from labelproof.experiments.demo import Row, rows
from labelproof.report.figures import Curve, Scatter, draw_curves, draw_scatters
from labelproof.training.record import RunRecord, write_text

__all__ = ["finding", "gains", "write_demo_page"]

SUFFIX = "+SR"


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
    page = (
        _environment()
        .get_template("demo.html")
        .render(
            title=f"labelproof demo: digits, {configuration['noise']}",
            finding=finding(records),
            table=gains(rows(records)),
            accuracy=_curves(records, "test_accuracy", "Test accuracy (%), clean labels", (0, 101)),
            sparse=_curves(
                records, "sparse_rate", "Sparse rate of the training outputs", (0, 1.01)
            ),
            embedding=_embedding(records, folder),
            configuration={k: v for k, v in configuration.items() if k not in ("method", "loss")},
            versions=records[0].versions,
            seeds=sorted({int(record.configuration["seed"]) for record in records}),
            seconds=sum(record.seconds for record in records),
        )
    )
    write_text(path, page)
    return path


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
    base = best.row.mean - (best.gain or 0)
    spread = f"{min(gain):+.1f} to {max(gain):+.1f}" if len(gain) > 1 else f"{gain[0]:+.1f}"
    return (
        f"{opening} {_base(best.row.method)} ends at {base:.1f}% on clean test images, "
        f"{best.row.method} at {best.row.mean:.1f}%. Sparse regularization changes the losses it "
        f"was put on by {spread} points."
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
    first = min(int(record.configuration["seed"]) for record in records)
    scatters = []
    for record in records:
        if record.configuration["seed"] != first:
            continue
        # Arrays only: a pickle in the archive is refused, since it could run code.
        with np.load(folder / record.name / "predictions.npz", allow_pickle=False) as arrays:
            features, labels = arrays["features"].astype(np.float32), arrays["labels"]
        points = TSNE(init="pca", random_state=0, max_iter=500).fit_transform(features)
        title = f"{record.configuration['method']} ({record.final_accuracy:.1f}%)"
        scatters.append(Scatter(title, points, labels))
    names = [str(label) for label in range(10)]
    return draw_scatters(scatters, title="Features of the test images (t-SNE)", class_names=names)


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("labelproof.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
