"""Looking at a run as it goes along, for signs that its network has collapsed."""

from __future__ import annotations

import json
from pathlib import Path

from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.metrics import spread
from labelproof.training.run_folder import METRICS
from labelproof.training.runner import Event
from labelproof.tuning.collapse import collapse, patience_for

__all__ = ["Watch"]


class Watch:
    """Looks at the epochs of a run for signs of a collapse, and says so once.

    Args:
        examples: What the run learns from; some are held out.
        configuration: Its epochs and batch size say how long is given it.

    Attributes:
        reason: Why it is given up; empty while it is not.
        news: A sentence that has not been passed on yet.
    """

    def __init__(self, examples: Examples, configuration: Configuration):
        labels = examples.given[examples.held]
        counts = [int((labels == each).sum()) for each in range(examples.dataset.num_classes)]
        self.classes = spread(counts)
        steps = -(-len(examples.used) // configuration.batch_size)
        self.patience = patience_for(epochs=configuration.epochs, steps=steps)
        self.curve: dict[str, list[float]] = {}
        self.reason = ""
        self.news = ""

    def remember(self, folder: Path, epochs: int) -> None:
        """Look back at the epochs that were done before the run was stopped."""
        file = folder / METRICS
        lines = file.read_text(encoding="utf-8").splitlines() if epochs else []
        for line in lines[:epochs]:
            self._look(json.loads(line))

    def __call__(self, event: Event) -> bool:
        """Take in an epoch; whether the network has collapsed."""
        self._look(event.value)
        return bool(self.reason)

    def _look(self, metrics: dict[str, float]) -> None:
        for name in ("validation_accuracy", "predicted_classes"):
            self.curve.setdefault(name, []).append(metrics[name])
        if not self.reason:
            found = collapse(self.curve, classes=self.classes, patience=self.patience)
            if found is not None:
                self.reason = found
                self.news = f"The network has collapsed: {found}"
