"""`labelproof predict`: what a trained network says about images, or about rows of a table."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from torch import Tensor

from labelproof.cli.exit_codes import READER_GONE
from labelproof.cli.lines import told, warn
from labelproof.cli.output_file import is_standard_output, output_file
from labelproof.cli.pictures import ARRAYS, Picture, find_pictures, load_array
from labelproof.cli.saved_runs import open_run
from labelproof.data.columns import Columns
from labelproof.data.dataset import Rows
from labelproof.data.labelled_files import OnError
from labelproof.data.notices import readable
from labelproof.data.row_arrays import array_names
from labelproof.data.row_ids import read_ids
from labelproof.data.rows import read_features
from labelproof.data.table_files import table_kind
from labelproof.training.durable import write_text
from labelproof.training.evaluation import CHUNK
from labelproof.training.saved import SavedRun

__all__ = ["predict"]


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Image files, folders of images (with all below them), tables that name image "
            "files, or .npy and .npz arrays; for a run on a table, tables.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The CSV file to write; - is standard output.",
            show_default="standard output",
        ),
    ] = None,
    all_classes: Annotated[
        bool, typer.Option("--all", help="The probability of every class, a column for each.")
    ] = False,
    identify: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="A column of the tables to write beside each prediction, such as customer_id, so "
            "that both can be joined.",
            show_default="none",
        ),
    ] = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable",
            help="Exit with 0 also where images cannot be read; in tables, take cells that are not "
            "numbers for missing.",
        ),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
) -> None:
    """Predict the classes of images or rows, as a table: path, label, probability.

    For example:

        labelproof predict photos-fit holiday/ --output predictions.csv

        labelproof predict customers-fit new-customers.csv --id customer_id

    For a run that was trained on a table, the files are tables with the same columns, in any order,
    with or without labels; the column row says which line of the file it is.

    For a run on images, a table may name the image files, relative to where it is; again the column
    row says which line of it a prediction is for.

    Images are turned to grey or colour as the run's were, and resized and cut to the size of its
    network. Arrays are (N, H, W), (N, H, W, C) or (N, C, H, W), of bytes or of numbers from 0 to 1;
    for them the table has a column index too. An image that cannot be read is named in a warning
    and left out, and the exit code is 1.
    """
    file = (
        None
        if output is None or is_standard_output(output)
        else output_file(output, example="predictions.csv")
    )
    saved = open_run(run, device)
    unreadable: list[str] = []
    if saved.tabular:
        on_error = "skip" if skip_unreadable else "raise"
        place = ["row"] if identify is None else ["row", _as_header(identify)]
        rows = _table_rows(
            saved, paths, identify=identify, on_error=on_error, all_classes=all_classes
        )
    else:
        channels, height, width = saved.description.input_shape
        pictures = find_pictures(paths, (channels, height, width), identify=identify)
        within = ["index"] * any(path.suffix.lower() in ARRAYS for path in paths)
        within += ["row"] * any(table_kind(path) != "" for path in paths)
        rows = _rows(saved, pictures, unreadable, within, identify, all_classes=all_classes)
        place = within if identify is None else [*within, _as_header(identify)]
    header = ["path", *place, "label", "probability"]
    if all_classes:
        header += [f"p({name})" for name in saved.description.class_names]
    if file is None:
        _write(sys.stdout, itertools.chain([header], rows))
    else:
        text = io.StringIO()
        _write(text, itertools.chain([header], rows))
        try:
            write_text(file, text.getvalue())
        except BrokenPipeError:  # a pipe, whose reader has had enough
            raise typer.Exit(READER_GONE) from None
    if unreadable and not skip_unreadable:
        raise typer.Exit(1)


def _as_header(identify: str) -> str:
    name = identify.strip()
    if name.casefold() in ("path", "row", "label", "probability"):
        raise ValueError(
            f"--id: expected a column that is called otherwise than those of predictions (path, "
            f"row, label, probability), got {name!r}; rename it in the table"
        )
    return name


def _rows(
    saved: SavedRun,
    pictures: Iterator[Picture],
    unreadable: list[str],
    places: Sequence[str],
    identify: str | None,
    *,
    all_classes: bool,
) -> Iterator[list[str]]:
    names = saved.description.class_names
    while some := list(itertools.islice(pictures, CHUNK)):
        readable = []
        for picture in some:
            if isinstance(picture.pixels, np.ndarray):
                readable.append((picture, saved.fit(picture.pixels)))
            else:
                unreadable.append(str(picture.pixels))
                warn(str(picture.pixels))
        if not readable:
            continue
        probabilities = saved.predict_fitted(np.stack([pixels for _, pixels in readable]))
        for (picture, _), row in zip(readable, probabilities, strict=True):
            place = [picture.index if each == "index" else picture.row for each in places]
            place += [] if identify is None else [picture.name]
            yield [picture.path, *place, *_cells(row, names, all_classes=all_classes)]


def _table_rows(
    saved: SavedRun,
    paths: Sequence[Path],
    *,
    identify: str | None,
    on_error: OnError,
    all_classes: bool,
) -> Iterator[list[str]]:
    with told():
        # All files are read before the first answer, so that nothing is said about half of them.
        tables = [
            (readable(str(path)), *_read_features(path, saved.columns, on_error)) for path in paths
        ]
    places = [
        [[path, place] for place in found]
        if identify is None
        else [
            [path, place, name] for place, name in zip(found, read_ids(file, identify), strict=True)
        ]
        for file, (path, _, found) in zip(paths, tables, strict=True)
    ]
    names = saved.description.class_names
    return (
        [*place, *_cells(row, names, all_classes=all_classes)]
        for (_, rows, _), found in zip(tables, places, strict=True)
        for place, row in zip(found, saved.predict(rows), strict=True)
    )


def _read_features(path: Path, columns: Columns, on_error: OnError) -> tuple[Rows, list[str]]:
    if path.suffix.lower() not in ARRAYS:
        return read_features(path, columns, on_error=on_error)
    array = load_array(path)
    if array.ndim != 2:
        raise ValueError(f"{path}: expected rows of numbers, got an array of shape {array.shape}")
    names = array_names(array.shape[1])
    rows = columns.encode(names, array.T, place=readable(str(path)), on_error=on_error)
    return rows, [str(index) for index in range(len(rows))]


def _cells(row: Tensor, names: tuple[str, ...], *, all_classes: bool) -> list[str]:
    best = int(row.argmax())
    values = row.tolist()
    every = [f"{value:.6g}" for value in values] if all_classes else []
    return [names[best], f"{values[best]:.6g}", *every]


def _write(stream: io.TextIOBase | Iterable[str], rows: Iterable[list[str]]) -> None:
    writer = csv.writer(stream, lineterminator="\n")  # pyright: ignore[reportArgumentType]
    writer.writerows(rows)
