"""`labelproof evaluate`: how good a trained network is, and where it errs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from labelproof.cli.data import Root
from labelproof.cli.flags import LABELS
from labelproof.cli.learned_from import count_learned
from labelproof.cli.lines import say, told, warn
from labelproof.cli.pictures import ARRAYS
from labelproof.cli.run_data import differs, find_data, find_labels
from labelproof.cli.saved_runs import open_run
from labelproof.data.arrays import load_arrays
from labelproof.data.dataset import Dataset
from labelproof.data.known_classes import in_classes
from labelproof.data.labelled_files import OnError
from labelproof.data.loading import load_dataset
from labelproof.data.notices import few, notice, readable
from labelproof.data.relabelling import relabel
from labelproof.data.rows import load_rows
from labelproof.data.table_files import table_kind
from labelproof.data.tables import read_table
from labelproof.data.taken_label import column_names, found_label, taken_label
from labelproof.fitting.attempts import Attempts, read_attempts
from labelproof.intervals import wilson_interval
from labelproof.ranges import choose, suggest
from labelproof.training.saved import SavedRun

__all__ = ["evaluate"]

_FORMATS = ("text", "json")


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="A dataset's name or path, with classes of the run; some may be missing.",
            show_default="what the run was trained on",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="The column with the labels, for a table of features or of images.",
            show_default="the one that the run learned from, or that is found",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help=f"{LABELS} About the training part, which data without parts are as a whole.",
            show_default="what the run was told, else the data's own",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Which part of the dataset: test, train, or another it has.")
    ] = "test",
    format: Annotated[str, typer.Option(help="text, or json for programs.")] = "text",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    data_root: Root = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable",
            help="Leave out images that cannot be read and rows without a label, and say so.",
        ),
    ] = False,
) -> None:
    """Measure a trained network: accuracy, that of each class, and what is taken for what.

    For example, on the test images of the dataset that it was trained on:

        labelproof evaluate labelproof-runs/digits-ce-s1-0123abcd

    On data of your own whose labels you have gone through:

        labelproof evaluate photos-fit --data new/ --labels reviewed.csv

    Labels are the dataset's own: noise that was put on the training labels is not put on these. The
    interval is Wilson's of 95%. The network computes in float32, so the last digit may differ from
    the training's own.
    """
    choose("format", format, _FORMATS)
    saved = open_run(run, device)
    attempts = read_attempts(run)
    name = data or find_data(saved, attempts, advice="say with --data PATH where it is now")
    # What a run has learned from is read as the run read it.
    on_error = "skip" if skip_unreadable or (data is None and attempts is not None) else "raise"
    if labels is None and data is None and split == "train" and attempts is not None:
        labels = find_labels(saved, attempts, advice="say with --labels where it is")
    with told():
        if label is None and table_kind(Path(name)):
            label = _label_of_run(saved, attempts, Path(name))
        classes = saved.description.class_names
        dataset = _read(saved, name, label=label, on_error=on_error, root=data_root)
        # Before they are corrected: to a class of the run that these data do not have otherwise.
        dataset = in_classes(dataset, classes)
        if labels is not None:
            dataset = relabel(dataset, name, labels, few_classes=True)
    if data is not None and split == "test" and "test" not in dataset.splits:
        split = "train"  # all there is in a file that was made to measure on
    found = _measure(saved, dataset, split)
    own = _same(name, saved, attempts)
    other = own and differs(saved, attempts, dataset, name, data_root)
    if other and data is None:
        warn(
            f"{readable(name)}: not what {run} was trained on: its labels, files or rows have "
            "changed since, or it is another of the same name; name what is measured on with "
            "--data PATH"
        )
    learned: bool | None = None if other else split == "train"
    among = None
    if not own:
        learned, among = _learned(saved, attempts, dataset, split, root=data_root)
    found |= {"learned_from": learned, "learned_from_n": among}
    if format == "json":
        typer.echo(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        # A part has a name where there are others, and not in a file that was made to measure on.
        parts = data is None or len(dataset.splits) > 1
        _show(Console(), found, f"{dataset.name}, {split}" if parts else readable(name))
        if among:
            what = "rows are the same as some" if dataset.tabular else "images are among those"
            say(
                Console(),
                f"{among:,} of {found['n']:,} of these {what} that it was trained and validated "
                "on: of how it does on new data they say nothing.",
            )
        elif learned and dataset.clean:
            say(Console(), "The network has learned from most of these.")
        elif learned:
            checked = "" if labels is not None else ", and no one has checked them"
            say(
                Console(),
                f"The network has learned from most of these labels{checked}: this is no measure "
                "of how it does on new data.",
            )


def _read(
    saved: SavedRun, name: str, *, label: str | None, on_error: OnError, root: Path | None
) -> Dataset:
    """The data, rows by the run's own columns: what they hold decides nothing about these."""
    if saved.tabular and table_kind(Path(name)):
        like = (saved.columns, saved.description.class_names)
        return load_rows(name, label=label, on_error=on_error, like=like)
    # An array with a label column is refused with all else that has no columns.
    if saved.tabular and Path(name).suffix.lower() in ARRAYS and label is None:
        like = (saved.columns, saved.description.class_names)
        return load_arrays(name, on_error=on_error, like=like)
    return load_dataset(name, root=root, on_error=on_error, label=label, few_classes=True)


def _label_of_run(saved: SavedRun, attempts: Attempts | None, path: Path) -> str | None:
    """The column of a table that holds what the run learned to tell; `None` if it is not known."""
    asked = None if attempts is None else attempts.asked.get("label")
    if asked is not None:
        return asked
    learned = None if attempts is None else attempts.label_column
    if learned is None and saved.tabular:
        # An earlier version did not note it, nor does a run of 'labelproof train'.
        learned = taken_label(Path(_own(saved, attempts)), saved.columns)
    if learned is None or not path.is_file():
        return None
    table = read_table(path)
    names = column_names(table)
    if learned.casefold() in (name.casefold() for name in names):
        return learned
    found = found_label(table, path)
    if found is None or (saved.tabular and found in saved.columns.names):
        return learned  # which is refused: labels are in none of the columns
    notice(
        f"{readable(str(path))}: the labels are taken from {found!r}, since {learned!r}, which the "
        "run learned from, is not there; if they are in another, say --label NAME"
    )
    return found


def _learned(
    saved: SavedRun,
    attempts: Attempts | None,
    dataset: Dataset,
    split: str,
    *,
    root: Path | None,
) -> tuple[bool | None, int | None]:
    """Whether a run has learned from other data that it is measured on, and from how many of them.

    That is `None` where it cannot be known: some rows of a table are the same by chance, and data
    that are not here any more cannot be compared with.
    """
    chosen = dataset.splits[split]
    among = count_learned(saved, attempts, chosen, root)
    if among is None or not among:
        return (None if among is None else False), among
    return (None if dataset.tabular and among < len(chosen) else True), among


def _same(name: str, saved: SavedRun, attempts: Attempts | None) -> bool:
    """Whether data are those of a run by their name or path."""
    own = _own(saved, attempts)
    try:
        return name == own or Path(name).samefile(own)
    except OSError:
        return False


def _own(saved: SavedRun, attempts: Attempts | None) -> str:
    """Where the data of a run are, or were."""
    try:
        return find_data(saved, attempts, advice="")
    except FileNotFoundError:
        return saved.configuration.data


def _measure(saved: SavedRun, dataset: Dataset, split: str) -> dict[str, Any]:
    if split == "test" and split not in dataset.splits:
        new = "NEW.csv" if dataset.tabular else "NEW-IMAGES"
        raise ValueError(
            f"{dataset.name} has no test part to measure on, only {', '.join(dataset.splits)}; "
            f"measure on data that are new to the run with --data {new}, or on those it was "
            "trained on with --split train"
        )
    if split not in dataset.splits:
        raise ValueError(
            f"split: expected one of {', '.join(dataset.splits)}, which {dataset.name} has, got "
            f"{split!r}{suggest(split, list(dataset.splits))}"
        )
    names = saved.description.class_names
    _check_kind(saved, dataset)
    chosen = dataset.splits[split]
    predicted = [logits.argmax(dim=1) for logits in saved.logits(chosen.images)]
    confusion = _confusion(chosen.labels, torch.cat(predicted).numpy(), len(names))
    total, correct = int(confusion.sum()), int(confusion.trace())
    counts = confusion.sum(axis=1)
    low, high = wilson_interval(correct, total)
    return {
        "run": str(saved.folder),
        "epochs": saved.epochs,
        "finished": saved.record is not None,
        "data": dataset.name,
        "split": split,
        "what": "rows" if dataset.tabular else "images",
        "n": total,
        "correct": correct,
        "accuracy": 100 * correct / total,
        "interval": [100 * low, 100 * high],
        "classes": [
            {
                "name": name,
                "n": int(counts[index]),
                "accuracy": (
                    100 * int(confusion[index, index]) / int(counts[index])
                    if counts[index]
                    else None
                ),
            }
            for index, name in enumerate(names)
        ],
        "confusions": _confusions(confusion, names),
    }


def _check_kind(saved: SavedRun, dataset: Dataset) -> None:
    if saved.tabular != dataset.tabular:
        kinds = ("images", "rows of a table")
        raise ValueError(
            f"data: expected {kinds[saved.tabular]}, as the run was trained on, {dataset.name} has "
            f"{kinds[dataset.tabular]}"
        )


def _confusion(
    labels: NDArray[np.int64], predicted: NDArray[np.int64], classes: int
) -> NDArray[np.int64]:
    """How often a label, the row, is predicted as a class, the column."""
    cells = np.bincount(labels * classes + predicted, minlength=classes * classes)
    return cells.reshape(classes, classes)


def _confusions(
    confusion: NDArray[np.int64], names: tuple[str, ...], most: int = 10
) -> list[dict[str, Any]]:
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = [divmod(int(cell), len(names)) for cell in order]
    return [
        {"label": names[row], "predicted": names[column], "n": int(wrong[row, column])}
        for row, column in pairs
        if wrong[row, column]
    ]


def _show(console: Console, found: dict[str, Any], place: str) -> None:
    low, high = found["interval"]
    unfinished = "" if found["finished"] else f" (unfinished, after {found['epochs']} epochs)"
    say(
        console,
        f"Accuracy {found['accuracy']:.2f}% ({low:.2f} to {high:.2f}): {found['correct']:,} of "
        f"{found['n']:,} {found['what']} of {place}{unfinished}",
    )
    absent = [entry["name"] for entry in found["classes"] if not entry["n"]]
    if absent:
        say(console, f"Of {few(absent)} there are no {found['what']}: nothing is said about them.")
    table = Table(title="Accuracy of each class")
    table.add_column("class", overflow="fold")
    table.add_column(found["what"], justify="right")
    table.add_column("accuracy", justify="right")
    for entry in found["classes"]:
        accuracy = "" if entry["accuracy"] is None else f"{entry['accuracy']:.2f}%"
        table.add_row(_plain(entry["name"]), f"{entry['n']:,}", accuracy)
    console.print(table)
    if found["confusions"]:
        say(console, "Most often taken for another:")
    for pair in found["confusions"]:
        say(console, f"{pair['n']:>7,}  {pair['label']} taken for {pair['predicted']}")


def _plain(name: str) -> Any:
    from rich.text import Text

    return Text(name)
