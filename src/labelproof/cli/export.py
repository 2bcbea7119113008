"""`labelproof export`: a trained network for programs that know nothing of labelproof."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from labelproof.cli.console import say, told
from labelproof.cli.options import output_file, takes
from labelproof.data.notices import few
from labelproof.training.export import looking
from labelproof.verbs.run import load_run

_SHOWN = 40
"""Names of features that are shown; tables may have thousands."""


@takes()
def export(
    run: Path, *, format: str = "onnx", output: str | None = None, network: str | None = None
) -> None:
    r"""Write a trained network as one file that runs without labelproof.

    For example:

        labelproof export labelproof-runs/digits-ce-s1-0123abcd --output digits.onnx

    The network takes uint8 pixels from 0 to 255 of shape (N, C, H, W), for any N, and returns
    logits of shape (N, classes). Normalisation is inside. The command prints how to resize other
    images. The file stores that and the class names as JSON under the key labelproof. A network for
    a table takes rows of numbers: the JSON lists them in order under features, and how to make them
    under columns.

    ONNX needs two more packages: pip install 'labelproof\[onnx]'.

    Args:
        format: onnx, for ONNX Runtime and others; torch-export, for torch.export.load.
        output: The file; by default model.onnx or model.pt2 in the run's folder.
        network: Name the run's own network, PACKAGE.MODULE:FACTORY, to allow its code to run.
    """
    file = None if output is None else output_file(output, example="model.onnx")
    with told():
        saved = load_run(run, network=network)
    path = saved.export(file, format=format)
    shape = ", ".join(str(size) for size in ("N", *saved.description.input_shape))
    taken = f"rows, float32 ({shape})" if saved.tabular else f"images, uint8 ({shape})"
    classes = len(saved.description.class_names)
    console = Console()
    say(console, f"{path}: takes {taken}, and gives logits of {classes} classes")
    if saved.tabular:
        names = saved.columns.feature_names
        more = "; all are in the file" if len(names) > _SHOWN else ""
        say(console, f"Features of a row, in order: {few(names, shown=_SHOWN)}{more}")
    else:
        say(console, _describe_looking(looking(saved.description), saved.description.input_shape))


def _describe_looking(how: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """How to bring an image to the network's size: what else is fed is not what it knows."""
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
