"""`labelproof demo`: a demonstration that needs no download."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from labelproof.cli.console import show_page, tell
from labelproof.cli.options import parse_seeds, takes
from labelproof.experiments.demo import SETTING, Result, discard, finished, plan, rows, train_all
from labelproof.report.demo import finding, write_demo_page
from labelproof.training import DivergedError, Job
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

    Trains cross entropy, focal loss and generalised cross entropy, each with and without the
    regularizer, on 1,347 small digit images of which 40% are mislabelled. Prints a table and writes
    a page with curves. Finished runs are not trained again.

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
    if done := {result.job for result in finished(runs)}:
        tell(f"{len(done)} of {len(runs)} runs are finished already.")
    try:
        left = {job: name for job, name in runs.items() if job not in done}
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


def _train_all(runs: Mapping[Job, str], processes: int, console: Console) -> None:
    hidden, total = not console.is_terminal, len(runs)
    with closing(train_all([*runs], processes=processes)) as ended:
        bar = track(ended, "Training", total, console=console, transient=True, disable=hidden)
        for number, (job, outcome) in enumerate(bar, start=1):
            failed = isinstance(outcome, DivergedError)
            result = outcome if failed else f"{outcome.final_accuracy:.1f}%"
            run = f"{runs[job]} seed {job.configuration.seed}"
            say(console, f"{number} of {total}  {run}  {result}")


def _table(results: Sequence[Result]) -> Table:
    noise = results[0].job.configuration.noise
    table = Table(title=f"Accuracy on clean test images after the last epoch (%), {noise}")
    table.add_column("method")
    for name in ("mean", "std", "seeds", "gain"):
        table.add_column(name, justify="right")
    table.add_column("loss", overflow="fold", style="dim")
    for row in rows(results):
        table.add_row(
            row.method,
            f"{row.mean:.2f}",
            "" if row.std is None else f"{row.std:.2f}",
            str(row.seeds),
            "" if row.gain is None else f"{row.gain:+.1f}",
            row.loss,
            style="" if row.gain is None else "bold",
        )
    return table
