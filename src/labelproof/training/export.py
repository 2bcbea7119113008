"""Export a trained network, including its normalisation, as one file.

Its inputs are uint8 pixels of 0..255: a quarter of the bytes of float32, and pixels of another
range cannot give silently wrong predictions.
"""

from __future__ import annotations

import importlib.util
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from labelproof.ranges import choose
from labelproof.training.files import write_bytes
from labelproof.training.geometry import short_side
from labelproof.training.provenance import Description
from labelproof.training.trained_network import TrainedNetwork
from labelproof.version import __version__

EXPORTS = {"onnx": ".onnx", "torch-export": ".pt2"}
"""The formats, and the suffixes of their files."""

KEY = "labelproof"
"""Metadata key under which a file holds its notes, such as class names, as JSON."""

# Supported by every runtime of recent years, and has all operators that the networks use.
_OPSET = 18


def export_run(run: TrainedNetwork, path: Path, *, format: str) -> None:
    """Export the network of a run.

    The network takes `images`, uint8 `(N, C, H, W)` for any `N`, and returns `logits`, float32
    `(N, classes)`. The caller resizes images to that size, as `TrainedNetwork.fit_image` does. The
    file's notes say how: resize the short side to `resize_short_side` and crop the central `crop`
    by `crop`, rounding down; without `crop`, resize to cover the input and crop the centre.
    `colours`, `interpolation` and `antialias` give the rest.

    The network of a run on a table takes `rows`, float32 `(N, F)`: in the notes, `features` names
    the features in order and `columns` how to encode them.

    Args:
        run: The run to export.
        path: The file; written whole or not at all.
        format: One of `EXPORTS`. `torch-export` is read by `torch.export.load`.

    Raises:
        ImportError: The packages for ONNX are not installed.
        ValueError: The format does not support an operation of the network.
    """
    choose("format", format, tuple(EXPORTS))
    if format == "onnx" and not importlib.util.find_spec("onnxscript"):
        raise ImportError("onnx: its packages are not installed: pip install 'labelproof[onnx]'")
    description = run.description
    name, dtype = ("rows", torch.float32) if run.tabular else ("images", torch.uint8)
    network = _Normalised(run.network, description).to(run.device).eval()
    # A batch of two, because the exporter assumes that a dimension of one is always one.
    example = torch.zeros(2, *description.input_shape, dtype=dtype, device=run.device)
    notes = json.dumps(
        {
            "class_names": description.class_names,
            "input_shape": description.input_shape,
            **({"crop": 0} if run.tabular else preprocessing(description)),
            "columns": description.columns,
            "features": run.columns.feature_names if run.tabular else None,
            "network": description.network,
            "labelproof": __version__,
        },
        ensure_ascii=False,
    )
    with _quiet():
        try:
            program = torch.export.export(
                network, (example,), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}
            )
            if format == "onnx":
                content = _as_onnx(program, name, notes)
            else:
                buffer = io.BytesIO()
                torch.export.save(program, buffer, extra_files={KEY: notes})
                content = buffer.getvalue()
        except Exception as error:  # the exporter may raise anything for a user's network
            first = (str(error) or type(error).__name__).strip().splitlines()[0]
            raise ValueError(
                f"{description.network} cannot be exported as {format}: {first}"
            ) from error
    write_bytes(path, content)


def preprocessing(description: Description) -> dict[str, Any]:
    """How to turn any image into the network's input, for a file's notes."""
    crop = description.crop
    return {
        "crop": crop,
        "resize_short_side": short_side(crop) if crop else None,
        "interpolation": "bilinear",
        "antialias": True,
        "colours": "L" if description.input_shape[0] == 1 else "RGB",
    }


class _Normalised(nn.Module):
    """A network preceded by the normalisation of its pixels of 0..255, or of its rows."""

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, description: Description):
        super().__init__()
        self.network = network
        pixels = len(description.input_shape) == 3
        for name in ("mean", "std"):
            numbers = torch.tensor(getattr(description, name))
            self.register_buffer(name, 255 * numbers.view(-1, 1, 1) if pixels else numbers)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.network((inputs.to(torch.float32) - self.mean) / self.std)


def _as_onnx(program: Any, name: str, notes: str) -> bytes:
    exported = torch.onnx.export(
        program,
        dynamo=True,
        opset_version=_OPSET,
        input_names=[name],
        output_names=["logits"],
        verbose=False,
    )
    assert exported is not None  # noqa: S101
    model = exported.model_proto
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, notes
    return model.SerializeToString()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's deprecation warnings and log messages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning)
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            yield
    finally:
        logger.setLevel(level)
