"""Records of runs that never were, and a MNIST of a few images to make real ones with."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelproof.data.published import idx_bytes
from labelproof.experiments.grids import plan
from labelproof.experiments.records import RecordStore
from labelproof.training.configuration import Configuration
from labelproof.training.record import RunRecord

REPOSITORY = Path(__file__).resolve().parents[1]
RECORDS = REPOSITORY / "records"
"""The committed records."""


@functools.cache
def committed() -> RecordStore:
    """The committed records, read once."""
    return RecordStore(RECORDS)


def made_record(
    configuration: Configuration,
    accuracy: float | Sequence[float],
    *,
    precision: str = "bf16",
    data: Mapping[str, Any] | None = None,
    **curves: Sequence[float],
) -> RunRecord:
    """A record of a configuration that ends with an accuracy; what comes before is made up."""
    ending = [accuracy] if isinstance(accuracy, (int, float)) else [*accuracy]
    accuracies = [10.0] * (configuration.epochs - len(ending)) + ending
    configuration = replace(configuration, precision=precision)
    curve = {"test_accuracy": accuracies, **{name: [*values] for name, values in curves.items()}}
    values = configuration.as_values()
    return RunRecord(configuration.name, values, 0.4, curve, 1.0, {}, dict(data or {}))


def fill_table(
    store: RecordStore, table: str, dataset: str, cells: Mapping[tuple[str, str], Sequence[float]]
) -> None:
    """Keep a record for each accuracy of each cell, with seeds from 1 on."""
    for (method, column), accuracies in cells.items():
        (run,) = plan(table, dataset, methods=[method], columns=[column])
        for seed, accuracy in enumerate(accuracies, start=1):
            store.add(made_record(replace(run.configuration, seed=seed), accuracy))


def write_tiny_mnist(root: Path, *, train: int = 20, test: int = 12) -> Path:
    """Write a MNIST of a few images, each with a bar where its digit says, below a data root."""
    folder = root / "mnist"
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for prefix, count in (("train", train), ("t10k", test)):
        labels = (np.arange(count) % 10).astype(np.uint8)
        images = generator.integers(0, 60, (count, 28, 28), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label : 2 * label + 4] += 150
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx_bytes(images))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return root
