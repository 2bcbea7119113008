"""The demo: digits with wrong labels, three losses, each plain and with sparse regularization.

One regulariser and one recipe for all rows. They were chosen on a noisy validation split of the
training images (`benchmarks/demo_settings.py`), never on the test images.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import torch

from labelproof.data import load_digits
from labelproof.losses import format_loss, parse_loss
from labelproof.models import FourLayerCNN
from labelproof.noise import NoiseSpec
from labelproof.training.record import RunRecord, read_record, save_run, versions
from labelproof.training.supervised import Batches, EpochMetrics, Recipe, predict, train_epochs

__all__ = ["SPARSE", "DemoRun", "Row", "finished", "plan", "rows", "train", "unfinished"]

SPARSE = "sr(tau=0.5,p=0.1,lambda0=5,rho=1.1,normalize=false)"
"""The regulariser of every regularised row."""

BASES = {"CE": "ce", "FL": "fl(gamma=0.5)", "GCE": "gce(q=0.01)"}
"""The rows by name. GCE has the q that the paper gives it under sparse regularization."""

WIDTH = 12


@dataclass(frozen=True)
class DemoRun:
    """One training run of the demo; all that decides its outcome."""

    method: str
    loss: str
    noise: NoiseSpec
    seed: int
    recipe: Recipe
    folder: Path

    @property
    def name(self) -> str:
        """The run's directory, readable and different for every configuration of the demo."""
        method = re.sub(r"[^a-z0-9.]+", "-", self.method.lower()).strip("-")
        noise = str(self.noise).replace(":", "-")
        return f"{method}-{noise}-e{self.recipe.epochs}-s{self.seed}"

    @property
    def configuration(self) -> dict[str, object]:
        """As plain values, for the record and to recognise a finished run."""
        return {
            "dataset": "digits",
            "method": self.method,
            "loss": format_loss(parse_loss(self.loss)),
            "noise": str(self.noise),
            "seed": self.seed,
            "network": f"four-layer-cnn(width={WIDTH})",
            **asdict(self.recipe),
        }

    def __str__(self) -> str:
        return f"{self.method} seed {self.seed}"


@dataclass(frozen=True)
class Row:
    """A method's result over its seeds."""

    method: str
    loss: str
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean last-epoch accuracy, percent."""
        return mean(self.accuracies)

    @property
    def std(self) -> float:
        """Standard deviation over the seeds, 0 for a single one."""
        return stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


def plan(
    noise: NoiseSpec,
    *,
    seeds: Sequence[int],
    recipe: Recipe,
    folder: Path,
    extra: Sequence[str] = (),
) -> list[DemoRun]:
    """All runs of a demo: every base plain and regularised, and the user's own losses.

    Args:
        noise: Kind and rate of the wrong labels.
        seeds: Each decides the noise, the initial weights and the order of the images.
        recipe: Epochs, batch size and optimiser.
        folder: Where finished runs go.
        extra: Further losses as text; each becomes a row.
    """
    methods = {}
    for name, base in BASES.items():
        methods[name] = base
        methods[f"{name}+SR"] = f"{base}+{SPARSE}"
    methods |= {text: text for text in extra}
    return [
        DemoRun(name, loss, noise, seed, recipe, folder)
        for seed in seeds
        for name, loss in methods.items()
    ]


def unfinished(runs: Sequence[DemoRun]) -> list[DemoRun]:
    """The runs that have no record of exactly their configuration."""
    return [run for run in runs if _record(run) is None]


def finished(runs: Sequence[DemoRun]) -> list[RunRecord]:
    """The records of the runs that have one, in the order of the plan."""
    return [record for run in runs if (record := _record(run)) is not None]


def train(run: DemoRun) -> Generator[EpochMetrics, None, RunRecord]:
    """Do one run: yield each epoch's metrics, save the run, return its record."""
    start = time.perf_counter()
    dataset = load_digits()
    noisy = run.noise.apply(
        dataset.train.labels,
        num_classes=dataset.num_classes,
        dataset=dataset.name,
        seed=run.seed,
        features=dataset.train.array,
    )
    generator = torch.Generator().manual_seed(run.seed)
    network = FourLayerCNN(
        dataset.num_classes, dataset.image_shape, width=WIDTH, generator=generator
    )
    data = Batches(dataset, noisy.noisy)
    curve: dict[str, list[float]] = {}
    epochs = train_epochs(network, parse_loss(run.loss), data, run.recipe, generator=generator)
    for metrics in epochs:
        for key, value in metrics.as_dict().items():
            curve.setdefault(key, []).append(value)
        yield metrics
    logits = predict(network, data.test_images)
    with torch.no_grad():
        features = network.features(data.test_images)
    record = RunRecord(
        name=run.name,
        configuration=run.configuration,
        noise_rate=noisy.rate,
        curve=curve,
        seconds=time.perf_counter() - start,
        versions=versions(),
    )
    arrays = {
        "features": features.numpy().astype(np.float16),
        "predicted": logits.argmax(1).numpy().astype(np.int16),
        "labels": dataset.test.labels.astype(np.int16),
    }
    save_run(run.folder, record, arrays)
    return record


def rows(records: Sequence[RunRecord]) -> list[Row]:
    """A row for each method, over the seeds it has records of."""
    methods = dict.fromkeys(str(record.configuration["method"]) for record in records)
    return [_row([r for r in records if r.configuration["method"] == name]) for name in methods]


def _row(records: Sequence[RunRecord]) -> Row:
    configuration = records[0].configuration
    return Row(
        method=str(configuration["method"]),
        loss=str(configuration["loss"]),
        accuracies=tuple(record.final_accuracy for record in records),
    )


def _record(run: DemoRun) -> RunRecord | None:
    record = read_record(run.folder / run.name)
    return record if record is not None and record.configuration == run.configuration else None
