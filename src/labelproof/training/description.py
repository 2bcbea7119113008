"""What has to be known to use a trained network: its shape, its classes, and what it is fed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelproof.data.dataset import Dataset
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import Configuration
from labelproof.training.durable import write_text

__all__ = ["Description", "describe", "read_description", "write_description"]

FILE = "model.json"


@dataclass(frozen=True)
class Description:
    """A network and its inputs.

    Attributes:
        network: As text.
        input_shape: Channels, height and width of what the network sees.
        class_names: A name for each output.
        mean: Per-channel mean that is subtracted from pixels scaled to 0..1.
        std: Per-channel standard deviation that they are divided by.
        crop: Side of the centre crop that images are brought to, or 0 where they come as they are.
        columns: How the rows of a table become numbers, as plain values; `None` for images.
        label: The column of a table that holds the labels.
    """

    network: str
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: int = 0
    columns: dict[str, Any] | None = None
    label: str | None = None


def describe(configuration: Configuration, dataset: Dataset) -> Description:
    """The description of what a configuration trains on a dataset.

    >>> from labelproof.data import load_digits
    >>> describe(Configuration("digits"), load_digits()).input_shape
    (1, 8, 8)
    """
    crop = parse_augmentation(configuration.augmentation).resized_crop
    shape = dataset.input_shape
    return Description(
        network=configuration.network,
        input_shape=(shape[0], crop, crop) if crop else shape,
        class_names=tuple(dataset.class_names),
        mean=tuple(dataset.mean),
        std=tuple(dataset.std),
        crop=crop,
        columns=None if dataset.columns is None else dataset.columns.as_values(),
        label=dataset.label,
    )


def write_description(folder: Path, description: Description) -> None:
    """Write it into a run's folder."""
    write_text(folder / FILE, json.dumps(asdict(description), indent=1) + "\n")


def read_description(folder: Path) -> Description:
    """Read it from a run's folder.

    Raises:
        FileNotFoundError: The folder is not a run's.
        ValueError: The file is damaged.
    """
    path = folder / FILE
    if not folder.exists():
        raise FileNotFoundError(
            f"{folder}: there is no such folder; 'labelproof fit' and 'labelproof train' make the "
            "folders of runs"
        )
    if not path.exists():
        raise FileNotFoundError(
            f"{folder} is not the folder of a run: it has no {FILE}; 'labelproof fit' and "
            "'labelproof train' make such folders"
        )
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        for name in ("input_shape", "class_names", "mean", "std"):
            values[name] = tuple(values[name])
        return Description(**values)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path}: not a description of a network ({error})") from None
