"""`labelproof export`: a trained network for programs that know nothing of labelproof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelproof.cli.lines import say
from labelproof.ranges import choose
from labelproof.training.export import EXPORTS, export_run
from labelproof.training.saved import load_run

__all__ = ["export"]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")],
    format: Annotated[
        str,
        typer.Option(
            help="onnx, for ONNX Runtime and others; torch-export, for torch.export.load."
        ),
    ] = "onnx",
    output: Annotated[
        Path | None,
        typer.Option(help="The file.", show_default="model.onnx or model.pt2 in the run's folder"),
    ] = None,
) -> None:
    r"""Write a trained network as one file that runs without labelproof.

    For example:

        labelproof export labelproof-runs/digits-ce-s1-0123abcd --output digits.onnx

    The network takes pixels as they are in image files: uint8 from 0 to 255 of shape (N, C, H, W),
    for any N. Normalisation is inside. It gives logits of shape (N, classes); the names of the
    classes are stored in the file, as JSON under the key labelproof. A network for a table takes
    rows of numbers, encoded as that JSON says.

    ONNX needs two more packages: pip install 'labelproof\[onnx]'.
    """
    choose("format", format, tuple(EXPORTS))
    saved = load_run(run)
    path = output if output is not None else run / f"model{EXPORTS[format]}"
    export_run(saved, path, format=format)
    shape = ", ".join(str(size) for size in ("N", *saved.description.input_shape))
    taken = f"rows, float32 ({shape})" if saved.tabular else f"images, uint8 ({shape})"
    classes = len(saved.description.class_names)
    say(Console(), f"{path}: takes {taken}, and gives logits of {classes} classes")
