"""`labelproof predict`: what a trained network says about images, or about rows of a table."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TextIO

import pandas as pd
import typer

from labelproof.cli import options
from labelproof.cli.console import told, warn
from labelproof.cli.main import READER_GONE
from labelproof.cli.options import option, output_file
from labelproof.training.files import write_text
from labelproof.verbs.predictions import predict_paths
from labelproof.verbs.run import load_run


def predict(
    run: options.Run,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Image files, folders of images (with subfolders), tables of image files, or .npy "
            "and .npz arrays; for a run on a table, tables.",
        ),
    ],
    output: Annotated[
        str | None,
        option("The CSV file to write; - is stdout.", metavar="PATH", default="stdout"),
    ] = None,
    all_classes: Annotated[bool, option("Write the probability of every class.", "--all")] = False,
    identify: Annotated[
        str | None,
        option(
            "A column of the tables to write beside each prediction, such as customer_id, as a "
            "join key.",
            "--id",
            metavar="COLUMN",
            default="none",
        ),
    ] = None,
    skip_unreadable: Annotated[
        bool,
        option(
            "Exit with 0 even if images cannot be read; in tables, treat cells that are not "
            "numbers as missing.",
            "--skip-unreadable",
        ),
    ] = False,
    device: options.Device = "auto",
    network: options.Factory = None,
) -> None:
    """Predict the classes of images or rows, as a table: path, label, probability.

    For example:

        labelproof predict photos-fit holiday/ --output predictions.csv

        labelproof predict customers-fit new-customers.csv --id customer_id

    A run on a table takes tables with the same columns in any order, with or without labels. A run
    on images also takes tables of image paths, relative to the table. For tables, the output column
    row has the line number.

    Images are converted to grey or colour as in training, resized and cropped to the network's
    size. Arrays are (N, H, W), (N, H, W, C) or (N, C, H, W), of bytes or of numbers from 0 to 1;
    the output column index numbers them. Unreadable images are skipped with a warning, and the exit
    code is 1.
    """
    file = None
    if output is not None and output != "-":
        file = output_file(output, example="predictions.csv")
    unreadable: list[str] = []

    def note(reason: str) -> None:
        unreadable.append(reason)
        warn(reason)

    with told():
        tables = predict_paths(
            load_run(run, device, network=network),
            paths,
            identify=identify,
            on_error="skip" if skip_unreadable else "raise",
            on_unreadable=note,
        )
    if file is None:
        _write(sys.stdout, tables, all_classes=all_classes)
    else:
        text = io.StringIO()
        _write(text, tables, all_classes=all_classes)
        try:
            write_text(file, text.getvalue())
        except BrokenPipeError:  # a pipe, whose reader has had enough
            raise typer.Exit(READER_GONE) from None
    if unreadable and not skip_unreadable:
        raise typer.Exit(1)


def _write(stream: TextIO, tables: Iterable[pd.DataFrame], *, all_classes: bool) -> None:
    for number, table in enumerate(tables):
        shown = table if all_classes else table.loc[:, :"probability"]
        shown.to_csv(
            stream, header=not number, index=False, float_format="%.6g", lineterminator="\n"
        )
