"""`labelproof demo`: a demonstration that needs no download."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from labelproof.cli.console import show_page, tell
from labelproof.cli.options import parse_seeds, takes
from labelproof.experiments.demo import SETTING, DemoRun, discard, finished, plan, rows, train_all
from labelproof.report.demo import finding, write_demo_page
from labelproof.training import DivergedError
from labelproof.verbs.progress import say


@takes()
def demo(
    *,
    noise: str = SETTING.noise,
    epochs: int = SETTING.epochs,
    seeds: str = "1,2,3",
    loss: list[str] | None = None,
    output: Path = Path("labelproof-demo"),
    processes: int = 0,
    fresh: bool = False,
    open_page: bool = True,
) -> None:
    """Train on digits with wrong labels, with and without sparse regularization.

    Cross entropy, focal loss and generalised cross entropy, each plain and regularised, on 1,347
    small digit images of which 40% are mislabelled. Prints a table and writes a page with curves.
    Finished runs are kept and not trained again.

    Args:
        noise: Label noise: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE or none.
        epochs: Passes over the training images.
        seeds: Seeds, separated by commas.
        loss: A loss to add as a row, such as 'gce(q=0.7)'.
        output: Folder for the page and the runs.
        processes: Runs at a time; 0 means one per core.
        fresh: Train finished runs again.
    """
    console = Console()
    setting = replace(SETTING, noise=noise, epochs=epochs)
    runs = plan(setting, seeds=parse_seeds(seeds), folder=output / "runs", extra=loss or ())
    if fresh:
        discard(runs)
    if done := finished(runs):
        tell(f"{len(done)} of {len(runs)} runs are finished already.")
    try:
        left = [run for run in runs if run not in done]
        _train_all(left, processes or os.cpu_count() or 1, console)
        results = finished(runs)
        console.print(_table(results))
        tell(finding(results))
        with console.status("Drawing the page"):
            page = write_demo_page(output / "report.html", results)
    except KeyboardInterrupt:
        tell(f"\nStopped. Finished runs are in {output / 'runs'}; the same command resumes.")
        raise typer.Exit(130) from None
    show_page(page, opened=open_page)


def _train_all(runs: Sequence[DemoRun], processes: int, console: Console) -> None:
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("Training", total=len(runs))
        for number, (run, outcome) in enumerate(train_all(runs, processes=processes), start=1):
            failed = isinstance(outcome, DivergedError)
            result = outcome if failed else f"{outcome.final_accuracy:.1f}%"
            say(console, f"{number} of {len(runs)}  {run}  {result}")
            bars.advance(bar)


def _table(runs: Sequence[DemoRun]) -> Table:
    noise = runs[0].configuration.noise
    table = Table(title=f"Accuracy on clean test images after the last epoch (%), {noise}")
    table.add_column("method")
    for name in ("mean", "std", "seeds", "gain"):
        table.add_column(name, justify="right")
    table.add_column("loss", overflow="fold", style="dim")
    for row in rows(runs):
        table.add_row(
            row.method,
            f"{row.mean:.2f}",
            f"{row.std:.2f}" if len(row.accuracies) > 1 else "",
            str(len(row.accuracies)),
            "" if row.gain is None else f"{row.gain:+.1f}",
            row.loss,
            style="" if row.gain is None else "bold",
        )
    return table
