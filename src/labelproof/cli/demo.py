"""`labelproof demo`: see it work, with nothing to fetch."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from labelproof.cli.arguments import parse_seeds
from labelproof.experiments.demo import (
    SETTING,
    DemoRun,
    Result,
    discard,
    finished,
    plan,
    rows,
    train,
    unfinished,
)
from labelproof.report.demo import finding, gains, write_demo_page
from labelproof.training import DivergedError
from labelproof.training.workers import Event, run_tasks

__all__ = ["demo"]


def demo(
    noise: Annotated[
        str,
        typer.Option(
            help="Label noise: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE or none."
        ),
    ] = SETTING.noise,
    epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the training images.")
    ] = SETTING.epochs,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1,2,3",
    loss: Annotated[
        list[str] | None,
        typer.Option(help="A loss to add as a row, such as 'gce(q=0.7)'; repeatable."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for the page and the runs.")] = Path(
        "labelproof-demo"
    ),
    processes: Annotated[
        int, typer.Option(min=0, help="Runs at a time; 0 means one per core.")
    ] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Train finished runs again.")] = False,
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
    setting = replace(SETTING, noise=noise, epochs=epochs)
    runs = plan(setting, seeds=parse_seeds(seeds), folder=output / "runs", extra=loss or ())
    if fresh:
        discard(runs)
    todo = unfinished(runs)
    if len(todo) < len(runs):
        console.print(f"{len(runs) - len(todo)} of {len(runs)} runs are finished already.")
    try:
        _train_all(todo, processes or os.cpu_count() or 1, console)
        results = finished(runs)
        console.print(_table(results))
        console.print(finding(results), highlight=False)
        with console.status("Drawing the page"):
            page = write_demo_page(output / "report.html", results)
    except KeyboardInterrupt:
        kept = len(runs) - len(unfinished(runs))
        console.print(
            f"\nStopped. {kept} of {len(runs)} runs are finished and kept in {output / 'runs'}; "
            "the same command resumes from there.",
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
        steps = sum(run.configuration.epochs for run in runs)
        self.overall = self.progress.add_task("All runs", total=steps, note="")
        self.bars: dict[DemoRun, TaskID] = {}
        self.epochs = dict.fromkeys(runs, 0)

    def __enter__(self) -> _Display:
        if self.total and not self.console.is_terminal:
            self.console.print(f"Training {self.total} runs")
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, event: Event[DemoRun]) -> None:
        run = event.task
        epochs = run.configuration.epochs
        if event.kind == "progress":
            if run not in self.bars:
                self.bars[run] = self.progress.add_task(str(run), total=epochs, note="")
            # Counted by the epoch's number: a run that goes on has some behind it.
            self._count(run, event.value["epoch"] + 1)
            note = f"{event.value['test_accuracy']:.1f}%"
            self.progress.update(self.bars[run], completed=self.epochs[run], note=note)
            return
        self.done += 1
        self._count(run, epochs)
        if run in self.bars:  # one whose record alone was missing has no epoch to show
            self.progress.remove_task(self.bars.pop(run))
        self.progress.update(self.overall, note=f"{self.done} of {self.total} runs")
        failed = isinstance(event.value, DivergedError)
        if failed or not self.console.is_terminal:
            outcome = f"{event.value}" if failed else f"{event.value.final_accuracy:.1f}%"
            self.console.print(
                f"  {self.done:>2} of {self.total}  {run!s:<16} {outcome}", highlight=False
            )

    def _count(self, run: DemoRun, epochs: int) -> None:
        self.epochs[run] = epochs
        self.progress.update(self.overall, completed=sum(self.epochs.values()))


def _table(results: Sequence[Result]) -> Table:
    noise = results[0].run.configuration.noise
    table = Table(title=f"Accuracy on clean test images after the last epoch (%), {noise}")
    table.add_column("method")
    for name in ("mean", "std", "seeds", "gain"):
        table.add_column(name, justify="right")
    table.add_column("loss", overflow="fold", style="dim")
    for entry in gains(rows(results)):
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
