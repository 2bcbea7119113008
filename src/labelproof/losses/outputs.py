"""What a network says about a batch: its logits and, once asked, their log-probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from labelproof.losses.inputs import working_precision

__all__ = ["Outputs"]


class Outputs:
    """Logits with the classes on axis 1, and the log-softmax that several losses may share.

    >>> outputs = Outputs(torch.zeros(1, 2))
    >>> outputs.log_probabilities.exp()
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, logits: Tensor, *, counted: bool = False):
        self.raw = logits
        self.counted = counted
        """Whether every target of the batch is known to be a class that counts."""
        self._logits: Tensor | None = None
        self._log_probabilities: Tensor | None = None

    @property
    def logits(self) -> Tensor:
        """The logits in working precision, float32 at least, lifted once."""
        if self._logits is None:
            self._logits = working_precision(self.raw)
        return self._logits

    @property
    def log_probabilities(self) -> Tensor:
        """Logarithm of the softmax of the logits, computed once."""
        if self._log_probabilities is None:
            self._log_probabilities = torch.log_softmax(self.logits, dim=1)
        return self._log_probabilities

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.raw.shape[1]
