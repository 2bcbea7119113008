"""The demo's page: a summary, a table, curves and embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np

from labelproof.data import load_digits
from labelproof.experiments.demo import Result, plain, rows
from labelproof.experiments.figures import Panel, embed
from labelproof.report.figures import draw_curves, draw_embeddings, method_styles, to_svg
from labelproof.report.page import render_words, write_page
from labelproof.training.trained_network import load_network

ENOUGH_EPOCHS = 20


def write_demo_page(path: Path, runs: Sequence[Result]) -> Path:
    """Write the page from finished runs: their records, and the first seed's networks."""
    seeds = sorted({run.job.configuration.seed for run in runs})
    curves = [run.record.curve["test_accuracy"] for run in runs if plain(run.method) is None]
    return write_page(
        path,
        "demo.html",
        title=f"Digits with wrong labels ({runs[0].job.configuration.noise})",
        finding=finding(runs),
        table=rows(runs),
        accuracy=_curves(runs, "test_accuracy", "Test accuracy (%), clean labels", (0, 101)),
        sparse=_curves(runs, "sparse_rate", "Sparse rate of the training outputs", (0, 1.01)),
        embedding=_embedding([run for run in runs if run.job.configuration.seed == seeds[0]]),
        record=runs[0].record,
        seeds=seeds,
        seconds=sum(run.record.seconds for run in runs),
        # Whether every plain loss ends below its best epoch, a sign of memorisation.
        fell=bool(curves) and all(curve[-1] < max(curve) - 5 for curve in curves),
    )


def finding(runs: Sequence[Result]) -> str:
    """The result, in one or two sentences."""
    gained = [row for row in rows(runs) if row.gain is not None]
    best = max(gained, key=lambda row: row.mean, default=None)
    return render_words(
        "findings.txt",
        part="demo",
        rate=fmean(run.record.noise_rate for run in runs),
        best=best,
        plain=best and plain(best.method),
        gains=sorted(row.gain for row in gained),
        epochs=runs[0].job.configuration.epochs,
        enough=ENOUGH_EPOCHS,
    )


def _curves(runs: Sequence[Result], metric: str, title: str, limits: tuple[float, float]) -> str:
    lines: dict[str, list[list[float]]] = {}
    for run in runs:
        lines.setdefault(run.method, []).append(run.record.curve[metric])
    panel = Panel(title, lines, runs[0].job.configuration.epochs)
    return draw_curves(panel, method_styles(panel), limits=limits)


def _embedding(runs: Sequence[Result]) -> str:
    digits, embeddings, title = load_digits(), [], "Features of the test images (t-SNE)"
    for method, job, _ in runs:
        assert job.folder is not None  # noqa: S101
        found = embed(load_network(job.folder), digits, np.arange(len(digits.test)))
        without = plain(method)
        column = "plain" if without is None else "with SR"
        embeddings.append(replace(found, method=without or method, noise=column))
    return to_svg(draw_embeddings(embeddings, title=title, class_names=digits.class_names), title)
