"""`labelproof evaluate`, `predict` and `export`: what can be done with a run."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import pandas as pd
import typer

from labelproof.cli.console import tell, warn
from labelproof.cli.options import output_file, takes
from labelproof.data.images import OnError
from labelproof.data.notices import few
from labelproof.ranges import choose
from labelproof.training.export import preprocessing
from labelproof.training.files import write_text
from labelproof.verbs.evaluation import Evaluation
from labelproof.verbs.predictions import predict_samples
from labelproof.verbs.run import load_run

_SHOWN = 40
"""Number of feature names that are shown; tables may have thousands."""


@takes("run.evaluate")
def evaluate(
    run: Path,
    *,
    format: str = "text",
    device: str = "auto",
    network: str | None = None,
    **given: Any,
) -> None:
    """Evaluate a run: accuracy, accuracy per class, and confusion matrix.

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
    found = load_run(run, device, network=network).evaluate(**given)
    if format == "json":
        typer.echo(json.dumps(found.as_values(), indent=1, ensure_ascii=False))
        return
    _show(found)
    if found.learned_from_n:
        tell(
            f"It was trained or validated on {found.learned_from_n:,} of these {found.what}, or on "
            "equal ones: they do not measure how accurate it is on new data."
        )


def _show(found: Evaluation) -> None:
    low, high = found.interval
    unfinished = "" if found.finished else f" (unfinished, after {found.epochs} epochs)"
    share = f"{found.correct:,} of {found.n:,} {found.what} of {found.place}{unfinished}"
    tell(f"Accuracy {found.accuracy:.2f}% ({low:.2f} to {high:.2f}): {share}")
    tell("\nAccuracy of each class:")
    table = found.classes.rename(columns={"n": found.what})
    tell(table.to_string(float_format="{:.2f}%".format, na_rep="") + "\n")
    if confusions := found.confusions():
        tell("Most often taken for another:")
    for label, predicted, number in confusions:
        tell(f"{number:>7,}  {label} taken for {predicted}")


@takes()
def predict(
    run: Path,
    paths: list[Path],
    *,
    output: str | None = None,
    all_classes: bool = False,
    id: str | None = None,
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
        id: A column of the tables to write beside each prediction, such as customer_id, as a
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

    tables = predict_samples(
        load_run(run, device, network=network),
        paths,
        identify=id,
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


@takes()
def export(
    run: Path, *, format: str | None = None, output: str | None = None, network: str | None = None
) -> None:
    r"""Write a trained network as one file that runs without labelproof.

    For example:

        labelproof export labelproof-runs/digits-ce-s1-0123abcd --output digits.onnx

    The network takes uint8 pixels from 0 to 255 of shape (N, C, H, W), for any N, and returns
    logits of shape (N, classes). It includes the normalisation. The command prints how to resize
    other images; the file stores this and the class names as JSON under the key labelproof. A
    network for a table takes rows of numbers: the JSON lists them in order under features, and how
    to compute them under columns.

    ONNX needs two more packages: pip install 'labelproof\[onnx]'.

    Args:
        format: onnx, for ONNX Runtime and others; torch-export, for torch.export.load; by default
            the one whose ending, .onnx or .pt2, the output has, else onnx.
        output: The file; by default model.onnx or model.pt2 in the run's folder.
        network: Name the run's own network, PACKAGE.MODULE:FACTORY, to allow its code to run.
    """
    file = None if output is None else output_file(output, example="model.onnx")
    saved = load_run(run, network=network)
    path = saved.export(file, format=format)
    shape = ", ".join(str(size) for size in ("N", *saved.description.input_shape))
    taken = f"rows, float32 ({shape})" if saved.tabular else f"images, uint8 ({shape})"
    classes = len(saved.description.class_names)
    tell(f"{path}: takes {taken}, and gives logits of {classes} classes")
    if saved.tabular:
        names = saved.columns.feature_names
        more = "; all are in the file" if len(names) > _SHOWN else ""
        tell(f"Features of a row, in order: {few(names, shown=_SHOWN)}{more}")
    else:
        tell(_describe_resizing(preprocessing(saved.description), saved.description.input_shape))


def _describe_resizing(how: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """How to bring images to the network's size as in training."""
    height, width = shape[1:]
    colours = "in grey" if how["colours"] == "L" else f"in {how['colours']}"
    filtered = how["interpolation"] + ", antialiased" * how["antialias"]
    resized = f"resized until they cover {height} x {width}"
    if how["crop"]:
        resized = f"the short side resized to {how['resize_short_side']}"
    return (
        f"Images of another size, as 'predict' takes them: {colours}, {resized} ({filtered}), the "
        f"middle {height} x {width} cut out"
    )
