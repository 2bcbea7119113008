"""`labelproof evaluate`: how good a trained network is, and where it errs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from labelproof.cli.console import say, told
from labelproof.cli.options import takes
from labelproof.ranges import choose
from labelproof.verbs.evaluation import Evaluation
from labelproof.verbs.run import load_run


@takes("run.evaluate")
def evaluate(
    run: Path,
    *,
    format: str = "text",
    device: str = "auto",
    network: str | None = None,
    **given: Any,
) -> None:
    """Evaluate a run: accuracy, accuracy of each class, and confusions.

    On the test split of its dataset:

        labelproof evaluate labelproof-runs/digits-ce-s1-0123abcd

    On other data with reviewed labels:

        labelproof evaluate photos-fit --data new/ --labels reviewed.csv

    Labels are the dataset's own, without added noise. The interval is Wilson's at 95%. Evaluation
    uses float32, so the last digit may differ from training.

    Args:
        data: A dataset's name or path, with the run's classes, some of which may be missing; by
            default the run's own.
        split: The split: test, train, or another of the dataset.
        format: text or json.
        network: Name the run's own network, PACKAGE.MODULE:FACTORY, to allow its code to run.
    """
    choose("format", format, ("text", "json"))
    with told():
        found = load_run(run, device, network=network).evaluate(**given)
    if format == "json":
        typer.echo(json.dumps(found.as_values(), indent=1, ensure_ascii=False))
        return
    console = Console()
    _show(console, found)
    some = f"{found.learned_from_n:,} of {found.n:,}" if found.learned_from_n else "most"
    if found.learned_from_n or found.learned_from:
        what = f"It was trained or validated on {some} of these {found.what}, or on equal ones"
        say(console, f"{what}: they do not measure how it does on new data.")


def _show(console: Console, found: Evaluation) -> None:
    low, high = found.interval
    unfinished = "" if found.finished else f" (unfinished, after {found.epochs} epochs)"
    share = f"{found.correct:,} of {found.n:,} {found.what} of {found.place}{unfinished}"
    say(console, f"Accuracy {found.accuracy:.2f}% ({low:.2f} to {high:.2f}): {share}")
    classes = found.classes
    table = Table(title="Accuracy of each class")
    table.add_column("class", overflow="fold")
    table.add_column(found.what, justify="right")
    table.add_column("accuracy", justify="right")
    for name, size, accuracy in classes.itertuples():
        table.add_row(Text(name), f"{size:,}", f"{accuracy:.2f}%" if size else "")
    console.print(table)
    if confusions := found.confusions():
        say(console, "Most often taken for another:")
    for label, predicted, number in confusions:
        say(console, f"{number:>7,}  {label} taken for {predicted}")
