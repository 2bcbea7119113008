"""`labelproof data show`: look at a dataset, and at what noise does to it."""

from __future__ import annotations

import shlex
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from labelproof.cli.data import Root
from labelproof.cli.lines import say, told
from labelproof.data.columns import Columns
from labelproof.data.dataset import Dataset
from labelproof.data.load import load_dataset
from labelproof.data.notices import count, readable
from labelproof.noise import NoiseSpec, NoisyLabels, parse_noise
from labelproof.report.dataset import finding, write_dataset_page

__all__ = ["show", "table_lines"]

SHOWN = 60
"""Columns and classes of a table that are listed."""


def show(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A dataset's name, or your own: a folder of images, a table, a file of arrays."
        ),
    ],
    noise: Annotated[
        str,
        typer.Option(
            help="Wrong labels to put on it: symmetric:RATE, asymmetric:RATE, pair:RATE, "
            "instance:RATE, human:WHICH or none."
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise and of the sample.")] = 1,
    samples: Annotated[int, typer.Option(min=1, help="Images on the page.")] = 80,
    human_labels: Annotated[
        Path | None, typer.Option(help="The file of human labels, for --noise human:WHICH.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="The column of a table that holds the labels.", show_default="found"),
    ] = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable",
            help="Leave out images, rows and cells that cannot be used, and say so.",
        ),
    ] = False,
    data_root: Root = None,
    output: Annotated[Path, typer.Option(help="The page.")] = Path("labelproof-dataset.html"),
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Draw a page about a dataset: its images, its classes, and the noise put on its labels.

    Says first how many labels are wrong, as it came out and not as it was asked for. The page
    shows images with their given and true labels, the classes before and after, and the noise
    matrix. Of a table of numbers and categories no page is drawn: its columns and classes are
    listed.
    """
    console = Console()
    spec = parse_noise(noise)
    if spec.kind == "human" and human_labels is None:
        raise ValueError(f"--human-labels: expected the file with the labels of {spec}, got none")
    with told():
        data = load_dataset(
            dataset,
            root=data_root,
            on_error="skip" if skip_unreadable else "raise",
            label=label,
        )
        noisy = None if spec.kind == "none" else _corrupt(data, spec, seed, human_labels)
    if data.tabular:
        say(console, "\n".join(table_lines(data)))
        if noisy is not None:
            say(console, finding(data, noisy))
        return
    console.print(finding(data, noisy), highlight=False)
    with console.status("Drawing the page"):
        page = write_dataset_page(
            output,
            data,
            noisy,
            samples=samples,
            seed=seed,
            command=shlex.join(
                ["labelproof", "data", "show", dataset, "--noise", str(spec), "--seed", str(seed)]
            ),
        )
    address = page.resolve().as_uri()
    opened = open_page and console.is_terminal and webbrowser.open(address)
    console.print(f"{'Opened' if opened else 'Page:'} {page}", highlight=False, markup=False)


def _corrupt(data: Dataset, spec: NoiseSpec, seed: int, human: Path | None) -> NoisyLabels:
    return spec.apply(
        data.train.labels,
        num_classes=data.num_classes,
        dataset=data.name,
        seed=seed,
        features=_features(data) if spec.kind == "instance" else None,
        human=human,
    )


def table_lines(data: Dataset) -> list[str]:
    r"""What there is to know about a table: rows, columns and classes.

    >>> from labelproof.data.dataset import Split
    >>> import pandas as pd
    >>> from labelproof.data.table import dataset_from_rows
    >>> sizes = pd.DataFrame({"size": [3, None, 5]})
    >>> columns = Columns.learn(sizes)
    >>> train = Split(columns.encode(sizes), np.array([0, 1, 1]))
    >>> table = dataset_from_rows("t", {"train": train}, ("a", "b"), columns)
    >>> print("\n".join(table_lines(table)))
    t: 3 rows to train on, 1 column, 2 features, 2 classes
    column  kind    missing  features
    size    number        1         2
    class  rows to train on
    a                     1
    b                     2
    How many labels are wrong is not known.
    """
    columns = data.columns or Columns(())
    others = [f"{len(s):,} to {name}" for name, s in data.splits.items() if name != "train"]
    sizes = ", ".join([f"{count(len(data.train), 'row')} to train on", *others])
    first = (
        f"{data.name}: {sizes}, {count(len(columns.columns), 'column')}, "
        f"{count(data.input_shape[0], 'feature')}, {count(data.num_classes, 'class', 'classes')}"
    )
    kinds = [
        (column.name, column.kind, f"{column.missing:,}", f"{len(column.feature_names):,}")
        for column in columns.columns
    ]
    labels = np.bincount(data.train.labels, minlength=data.num_classes)
    classes = [
        (name, f"{rows:,}") for name, rows in zip(data.class_names, labels.tolist(), strict=True)
    ]
    left_out = [f"left out: {name} ({reason})" for name, reason in columns.left_out]
    known = [] if data.clean else ["How many labels are wrong is not known."]
    return [
        first,
        *_aligned([("column", "kind", "missing", "features"), *kinds], numbers=2),
        *left_out,
        *_aligned([("class", "rows to train on"), *classes], numbers=1),
        *known,
    ]


def _aligned(rows: Sequence[tuple[str, ...]], *, numbers: int) -> list[str]:
    """Cells under each other, the last few of each row to the right; long tables are cut."""
    shown = [tuple(readable(cell)[:40] for cell in row) for row in rows[: SHOWN + 1]]
    widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
    words = len(widths) - numbers
    lines = [
        "  ".join(
            cell.ljust(width) if place < words else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in shown
    ]
    rest = len(rows) - len(shown)
    return [*lines, *([f"and {rest:,} more"] if rest else [])]


def _features(data: Dataset) -> NDArray[Any]:
    if not isinstance(data.train.images, np.ndarray):
        raise ValueError(
            f"noise: instance noise looks at all images at once, and those of {data.name} are "
            "decoded one by one; save them as arrays first"
        )
    return data.train.images
