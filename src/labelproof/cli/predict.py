"""`labelproof predict`: what a trained network says about images, or about rows of a table."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import pandas as pd
import typer

from labelproof.cli.console import told, warn
from labelproof.cli.options import output_file, takes
from labelproof.data.images import OnError
from labelproof.training.files import write_text
from labelproof.verbs.predictions import predict_paths
from labelproof.verbs.run import load_run


@takes()
def predict(
    run: Path,
    paths: list[Path],
    *,
    output: str | None = None,
    all_classes: bool = False,
    identify: str | None = None,
    on_error: OnError = "raise",
    device: str = "auto",
    network: str | None = None,
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

    Args:
        paths: Image files, folders of images (with subfolders), tables of image files, or .npy and
            .npz arrays; for a run on a table, tables.
        output: The CSV file to write; - is stdout, the default.
        all_classes: Write the probability of every class.
        identify: A column of the tables to write beside each prediction, such as customer_id, as a
            join key.
        skip_unreadable: Exit with 0 even if images cannot be read; in tables, treat cells that are
            not numbers as missing.
        network: Name the run's own network, PACKAGE.MODULE:FACTORY, to allow its code to run.
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
            on_error=on_error,
            on_unreadable=note,
        )
    if file is None:
        _write(sys.stdout, tables, all_classes=all_classes)
    else:
        text = io.StringIO()
        _write(text, tables, all_classes=all_classes)
        write_text(file, text.getvalue())
    if unreadable and on_error == "raise":
        raise typer.Exit(1)


def _write(stream: TextIO, tables: Iterable[pd.DataFrame], *, all_classes: bool) -> None:
    for number, table in enumerate(tables):
        shown = table if all_classes else table.loc[:, :"probability"]
        shown.to_csv(
            stream, header=not number, index=False, float_format="%.6g", lineterminator="\n"
        )
