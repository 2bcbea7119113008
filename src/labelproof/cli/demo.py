"""`labelproof demo`: see it work, with nothing to fetch."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from labelproof.experiments.demo import DemoRun, finished, plan, rows, train, unfinished
from labelproof.losses import parse_loss
from labelproof.noise import parse_noise
from labelproof.report.demo import finding, gains, write_demo_page
from labelproof.training.record import RunRecord, remove_unfinished
from labelproof.training.supervised import Recipe
from labelproof.training.workers import Event, run_tasks

__all__ = ["demo"]


def demo(
    noise: Annotated[
        str,
        typer.Option(
            help="Wrong labels: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE or none."
        ),
    ] = "symmetric:0.4",
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 40,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1,2,3",
    loss: Annotated[
        list[str] | None,
        typer.Option(help="A loss of your own as a further row, such as 'gce(q=0.7)'; repeatable."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for the page and the runs.")] = Path(
        "labelproof-demo"
    ),
    processes: Annotated[
        int, typer.Option(min=0, help="Runs at a time; 0 takes one for each core.")
    ] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Train again even where a run is finished.")
    ] = False,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser at the end.")
    ] = True,
) -> None:
    """Train on digits with wrong labels, with and without sparse regularization.

    Cross entropy, focal loss and generalised cross entropy, each plain and regularised, on 1,347
    small digit images of which 40% are mislabelled. Prints a table and writes a page with curves.
    Finished runs are kept and not trained again.
    """
    console = Console()
    extra = list(loss or [])
    for text in extra:
        parse_loss(text)
    runs = plan(
        parse_noise(noise),
        seeds=_seeds(seeds),
        recipe=Recipe(epochs=epochs),
        folder=output / "runs",
        extra=extra,
    )
    todo = runs if fresh else unfinished(runs)
    remove_unfinished(output / "runs")
    if len(todo) < len(runs):
        console.print(f"{len(runs) - len(todo)} of {len(runs)} runs are finished already.")
    try:
        _train_all(todo, processes or os.cpu_count() or 1, console)
        records = finished(runs)
        console.print(_table(records))
        console.print(finding(records), highlight=False)
        with console.status("Drawing the page"):
            page = write_demo_page(output / "report.html", records, folder=output / "runs")
    except KeyboardInterrupt:
        remove_unfinished(output / "runs")
        kept = len(runs) - len(unfinished(runs))
        console.print(
            f"\nStopped. {kept} of {len(runs)} runs are finished and kept in {output / 'runs'}; "
            "the same command goes on from there.",
            highlight=False,
        )
        raise typer.Exit(130) from None
    address = page.resolve().as_uri()
    opened = open_page and console.is_terminal and webbrowser.open(address)
    console.print(f"{'Opened' if opened else 'Page:'} {page}", highlight=False)


def _train_all(runs: Sequence[DemoRun], processes: int, console: Console) -> None:
    with _Display(runs, console) as display:
        for event in run_tasks(runs, train, processes=processes):
            display.show(event)


class _Display:
    """One bar for everything and one for each run under way; plain lines where no one watches."""

    def __init__(self, runs: Sequence[DemoRun], console: Console):
        self.total = len(runs)
        self.console = console
        self.done = 0
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        steps = sum(run.recipe.epochs for run in runs)
        self.overall = self.progress.add_task("All runs", total=steps, note="")
        self.bars: dict[DemoRun, TaskID] = {}

    def __enter__(self) -> _Display:
        if self.total and not self.console.is_terminal:
            self.console.print(f"Training {self.total} runs")
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, event: Event[DemoRun]) -> None:
        run = event.task
        if event.kind == "progress":
            if run not in self.bars:
                self.bars[run] = self.progress.add_task(str(run), total=run.recipe.epochs, note="")
            note = f"{event.value.test_accuracy:.1f}%"
            self.progress.update(self.bars[run], advance=1, note=note)
            self.progress.update(self.overall, advance=1)
            return
        self.done += 1
        self.progress.remove_task(self.bars.pop(run))
        self.progress.update(self.overall, note=f"{self.done} of {self.total} runs")
        if not self.console.is_terminal:
            self.console.print(
                f"  {self.done:>2} of {self.total}  {run!s:<16} {event.value.final_accuracy:.1f}%",
                highlight=False,
            )


def _table(records: Sequence[RunRecord]) -> Table:
    configuration = records[0].configuration
    table = Table(
        title=f"Accuracy on clean test images after the last epoch (%), {configuration['noise']}"
    )
    table.add_column("method")
    for name in ("mean", "std", "seeds", "gain"):
        table.add_column(name, justify="right")
    table.add_column("loss", overflow="fold", style="dim")
    for entry in gains(rows(records)):
        row = entry.row
        gain = "" if entry.gain is None else f"{entry.gain:+.1f}"
        table.add_row(
            row.method,
            f"{row.mean:.2f}",
            f"{row.std:.2f}" if len(row.accuracies) > 1 else "",
            str(len(row.accuracies)),
            gain,
            row.loss,
            style="" if entry.gain is None else "bold",
        )
    return table


def _seeds(text: str) -> list[int]:
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"seeds: expected whole numbers such as 1,2,3, got {text!r}") from None
    if min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected different numbers of at least 0, got {text!r}")
    return seeds
