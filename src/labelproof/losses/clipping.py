r"""Logit clipping: no output is so sure that a wrong label pulls at it without bound."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from labelproof.losses.base import Loss
from labelproof.losses.foreign import as_loss
from labelproof.losses.outputs import Outputs
from labelproof.ranges import within

__all__ = ["LogitClip", "clip_logits"]


class LogitClip(Loss):
    r"""A loss of logits whose l2 norm is at most $\delta$: longer ones are scaled down to it.

    Bounded logits bound any loss, which bounds what wrong labels can do. The logits' own argmax
    stays the prediction.

    Args:
        base: A loss of this package, or a module over (logits, target) that can return one value
            per example. Its reduction and class weights become this loss's.
        delta: Largest norm, above 0.

    Example:
        >>> from labelproof import CrossEntropy
        >>> LogitClip(CrossEntropy(), delta=1)(torch.tensor([[30.0, 40.0]]), torch.tensor([0]))
        tensor(0.7981)

    Reference:
        Wei et al., "Mitigating Memorization of Noisy Labels by Clipping the Model Prediction",
        ICML 2023.
    """

    def __init__(self, base: nn.Module, delta: float = 1.0):
        base = as_loss(base)
        super().__init__(**base.settings)
        self.base = base
        self.delta = within("delta", delta, 1e-6, 1e6)

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the labels given, the base's by its own rule."""
        return self.base.values(self._clip(outputs), target)

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the integer labels given, `(N, ...)`."""
        return self.base.index_values(self._clip(outputs), target)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every label an example could have had, `(N, C, ...)`."""
        return self.base.label_values(self._clip(outputs))

    def _clip(self, outputs: Outputs) -> Outputs:
        return Outputs(clip_logits(outputs.logits, self.delta), counted=outputs.counted)

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return f"delta={self.delta:g}"


def clip_logits(logits: Tensor, delta: float) -> Tensor:
    """Scale logits `(N, C, ...)` down to a norm of `delta` where theirs is larger.

    A class that is masked with minus infinity does not count in the norm.

    >>> clip_logits(torch.tensor([[30.0, 40.0], [0.3, 0.4]]), 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    masked = logits == -math.inf
    kept = torch.where(masked, 0, logits)
    norm = torch.linalg.vector_norm(kept, dim=1, keepdim=True)
    return torch.where(masked, -math.inf, kept * (delta / norm.clamp_min(delta)))
