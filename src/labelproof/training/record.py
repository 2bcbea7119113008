"""The record of a finished run."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labelproof.data.dataset import Dataset
from labelproof.training.files import read_fields, read_json
from labelproof.version import __version__

RECORD = "record.json"


@dataclass(frozen=True)
class RunRecord:
    """The configuration and results of a finished run, for tables and figures.

    Attributes:
        name: The name of the run.
        configuration: The configuration as plain values.
        noise_rate: The actual share of wrong training labels, or of those changed by noise if the
            true labels are unknown.
        curve: For each metric, its value at every epoch.
        seconds: Duration of the run.
        versions: Versions of the software, and the hardware.
        data: The number of training and test examples, and their fingerprint. Empty in older
            records.
        candidates: For a blend, the `log_loss` on held-out labels, the `agreement` with them and
            the `weight` of each classifier.
    """

    name: str
    configuration: dict[str, Any]
    noise_rate: float
    curve: dict[str, list[float]]
    seconds: float
    versions: dict[str, str]
    data: dict[str, Any] = field(default_factory=dict)
    candidates: dict[str, dict[str, float]] = field(default_factory=dict)

    def as_json(self) -> str:
        """As JSON, with one line for each list and six digits for each number, to keep it small."""
        values = asdict(self)
        for name in ("data", "candidates"):
            if not values[name]:
                del values[name]
        curve = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps([float(f'{number:.6g}') for number in numbers])}"
            for name, numbers in values.pop("curve").items()
        )
        rest = json.dumps(values, indent=1).removesuffix("\n}")
        return f'{rest},\n "curve": {{\n{curve}\n }}\n}}\n'

    @property
    def wrong_labels(self) -> float | None:
        """The share of wrong training labels, if it is known."""
        # Only with the true labels is there a share of memorised ones.
        return self.noise_rate if "wrong_fitted" in self.curve else None

    @property
    def final_accuracy(self) -> float:
        """Test accuracy after the last epoch, not the best one.

        Raises:
            ValueError: The run has no test data.
        """
        if accuracies := self.curve.get("test_accuracy"):
            return accuracies[-1]
        raise ValueError(
            f"{self.name}: its data have no test part to measure an accuracy on; see "
            "curve['validation_accuracy'] for held-out labels"
        )


def read_record(run: str | os.PathLike[str]) -> RunRecord | None:
    """The record of a finished run, or `None` if there is no readable one."""
    try:
        return read_fields(RunRecord, read_json(Path(run) / RECORD))
    except (OSError, ValueError, TypeError):
        return None


def sizes(dataset: Dataset) -> dict[str, int]:
    """The number of training and test examples, for a record."""
    splits = dataset.splits
    return {name: len(splits[name]) for name in ("train", "test") if name in splits}


def versions(device: torch.device | None = None) -> dict[str, str]:
    """The versions of the software and the hardware, which results depend on too."""
    hardware = {}
    if device is not None and device.type == "cuda":
        hardware = {"device": torch.cuda.get_device_name(device), "cuda": str(torch.version.cuda)}
    return {
        "labelproof": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        **hardware,
    }
