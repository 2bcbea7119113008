"""The demo's page: the finding in words, the table, curves, and what the network sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from labelproof.data.published import DATASETS
from labelproof.experiments.curves import Line, Panel
from labelproof.experiments.demo import Result, Row, embed_digits, rows
from labelproof.report.figures import draw_curves, method_styles, to_svg
from labelproof.report.page import write_page
from labelproof.report.paper_figures import draw_embeddings

SUFFIX = "+SR"
ENOUGH_EPOCHS = 20


@dataclass(frozen=True)
class TableRow:
    """A row as the page shows it."""

    row: Row
    gain: float | None


def write_demo_page(path: Path, results: Sequence[Result]) -> Path:
    """Write the page from finished runs: their records, and the first seed's networks."""
    configuration = results[0].record.configuration
    return write_page(
        path,
        "demo.html",
        title=f"Digits with wrong labels ({configuration['noise']})",
        finding=finding(results),
        table=gains(rows(results)),
        accuracy=_curves(results, "test_accuracy", "Test accuracy (%), clean labels", (0, 101)),
        sparse=_curves(results, "sparse_rate", "Sparse rate of the training outputs", (0, 1.01)),
        embedding=_embedding(results),
        configuration={k: v for k, v in configuration.items() if k not in ("loss", "seed")},
        versions=results[0].record.versions,
        seeds=sorted({result.seed for result in results}),
        seconds=sum(result.record.seconds for result in results),
        command=_command(results),
        fell=_fell(results),
    )


def _command(results: Sequence[Result]) -> str:
    configuration = results[0].run.configuration
    seeds = sorted({result.seed for result in results})
    return (
        f"labelproof demo --noise {configuration.noise} --epochs {configuration.epochs} "
        f"--seeds {','.join(str(seed) for seed in seeds)}"
    )


def _fell(results: Sequence[Result]) -> bool:
    """Whether every plain loss ends below its best epoch, which is what memorising looks like."""
    plain = [r.record.curve["test_accuracy"] for r in results if _base(r.method) is None]
    return bool(plain) and all(curve[-1] < max(curve) - 5 for curve in plain)


def gains(table: Sequence[Row]) -> list[TableRow]:
    """Each row with its gain over the same loss without regularization, where that is there."""
    means = {row.method: row.mean for row in table}
    return [
        TableRow(row, row.mean - means[base] if (base := _base(row.method)) in means else None)
        for row in table
    ]


def finding(results: Sequence[Result]) -> str:
    """What came out, in one or two sentences."""
    compared = [entry for entry in gains(rows(results)) if entry.gain is not None]
    rate = float(np.mean([result.record.noise_rate for result in results]))
    opening = f"{100 * rate:.0f}% of the training labels are wrong."
    if not compared:
        return opening
    best = max(compared, key=lambda entry: entry.row.mean)
    gain = [entry.gain for entry in compared if entry.gain is not None]
    epochs = results[0].run.configuration.epochs
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


def _curves(results: Sequence[Result], metric: str, title: str, limits: tuple[float, float]) -> str:
    methods = dict.fromkeys(result.method for result in results)
    lines = [
        Line(method, [r.record.curve[metric] for r in results if r.method == method])
        for method in methods
    ]
    panel = Panel(title, lines, results[0].run.configuration.epochs)
    return draw_curves(panel, method_styles(panel), limits=limits)


def _embedding(results: Sequence[Result]) -> str:
    first = min(result.seed for result in results)
    embeddings = [
        replace(
            embed_digits(result.run),
            method=_base(result.method) or result.method,
            noise="plain" if _base(result.method) is None else "with SR",
        )
        for result in results
        if result.seed == first
    ]
    title = "Features of the test images (t-SNE)"
    return to_svg(
        draw_embeddings(embeddings, title=title, class_names=DATASETS["digits"].class_names), title
    )
