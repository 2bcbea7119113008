"""A run's metrics as TensorBoard's event files."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Scalars"]


class Scalars:
    """Writes each epoch's metrics, under `tensorboard/` of the run's folder.

    Args:
        folder: The run's.

    Raises:
        ImportError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path):
        if importlib.util.find_spec("tensorboard") is None:
            raise ImportError(
                "--tensorboard: expected the package tensorboard, which is not installed; get it "
                "with pip install 'labelproof[tensorboard]'"
            )
        self.folder = folder / "tensorboard"
        self._writer: Any = None

    def start(self, epoch: int) -> None:
        """Begin; what was written of this epoch and later ones by an earlier course is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self.folder), purge_step=epoch)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Write an epoch."""
        epoch = int(metrics["epoch"])
        for name, value in metrics.items():
            if name != "epoch":
                self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def close(self) -> None:
        """End the files."""
        if self._writer is not None:
            self._writer.close()
