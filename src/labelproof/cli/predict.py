"""`labelproof predict`: what a trained network says about images."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from torch import Tensor

from labelproof.cli.pictures import ARRAYS, Picture, find_pictures
from labelproof.training.durable import write_text
from labelproof.training.evaluation import CHUNK
from labelproof.training.saved import SavedRun, load_run

__all__ = ["predict"]


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Image files, folders of images (with all below them), or .npy and .npz arrays.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option(help="The CSV file to write.", show_default="standard output")
    ] = None,
    all_classes: Annotated[
        bool, typer.Option("--all", help="The probability of every class, a column for each.")
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option("--skip-unreadable", help="Exit with 0 also where images cannot be read."),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
) -> None:
    """Predict the classes of images, as a table: path, label, probability.

    For example:

        labelproof predict labelproof-runs/photos-ce-s1-0123abcd holiday/ --output predictions.csv

    Images are turned to grey or colour as the run's were, and resized and cut to the size of its
    network. Arrays are (N, H, W), (N, H, W, C) or (N, C, H, W), of bytes or of numbers from 0 to 1;
    for them the table has a column index too. An image that cannot be read is named in a warning
    and left out, and the exit code is 1.
    """
    saved = load_run(run, device)
    channels, height, width = saved.description.input_shape
    pictures = find_pictures(paths, (channels, height, width))
    indexed = any(path.suffix.lower() in ARRAYS for path in paths)
    unreadable: list[str] = []
    rows = _rows(saved, pictures, unreadable, indexed=indexed, all_classes=all_classes)
    header = ["path", *["index"] * indexed, "label", "probability"]
    if all_classes:
        header += [f"p({name})" for name in saved.description.class_names]
    if output is None:
        _write(sys.stdout, itertools.chain([header], rows))
    else:
        text = io.StringIO()
        _write(text, itertools.chain([header], rows))
        write_text(output, text.getvalue())
    if unreadable and not skip_unreadable:
        raise typer.Exit(1)


def _rows(
    saved: SavedRun,
    pictures: Iterator[Picture],
    unreadable: list[str],
    *,
    indexed: bool,
    all_classes: bool,
) -> Iterator[list[str]]:
    while some := list(itertools.islice(pictures, CHUNK)):
        readable = []
        for picture in some:
            if isinstance(picture.pixels, np.ndarray):
                readable.append((picture, saved.fit(picture.pixels)))
            else:
                unreadable.append(str(picture.pixels))
                typer.secho(f"warning: {picture.pixels}", fg="yellow", err=True)
        if not readable:
            continue
        probabilities = saved.predict_fitted(np.stack([pixels for _, pixels in readable]))
        for (picture, _), row in zip(readable, probabilities, strict=True):
            place = [picture.path, *[picture.index] * indexed]
            yield place + _cells(row, saved.description.class_names, all_classes=all_classes)


def _cells(row: Tensor, names: tuple[str, ...], *, all_classes: bool) -> list[str]:
    best = int(row.argmax())
    values = row.tolist()
    every = [f"{value:.6g}" for value in values] if all_classes else []
    return [names[best], f"{values[best]:.6g}", *every]


def _write(stream: io.TextIOBase | Iterable[str], rows: Iterable[list[str]]) -> None:
    writer = csv.writer(stream, lineterminator="\n")  # pyright: ignore[reportArgumentType]
    writer.writerows(rows)
