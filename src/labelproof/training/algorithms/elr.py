"""Early-learning regularization: keep predictions close to those before memorisation.

A network learns right labels first and memorises wrong ones later. A moving average of its past
predictions preserves the first phase, and a penalty keeps the output close to that average.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from labelproof.losses import Loss, sparse_rate
from labelproof.ranges import within
from labelproof.training.algorithms.base import Algorithm, Batch, Objectives

CLAMP = 1e-4
"""Probabilities are clamped this far from 0 and 1, as in the authors' code. It keeps `1 - <t, u>`
away from 0, where the logarithm and its gradient are unbounded."""


class EarlyLearning(Algorithm):
    r"""Minimise the loss plus $\lambda \log(1 - \langle t, u \rangle)$ on all examples.

    Here $u$ is the softmax of the logits and $t$ the example's target: a moving average of its
    predictions, $t \leftarrow \beta t + (1 - \beta) u$, which starts at 0. A step first updates the
    targets of its batch, then computes the penalty; no gradient flows through the targets. They are
    one row for each training example and are saved in the checkpoint.

    The parts are `base`, the loss, `penalty`, the mean logarithm, and `sparse_rate`.

    Args:
        loss: The loss; cross entropy in the paper.
        num_classes: Number of classes.
        num_examples: Number of training examples.
        beta: Decay of the moving average.
        weight: Weight of the penalty, $\lambda$.

    Example:
        >>> from labelproof import CrossEntropy
        >>> algorithm = EarlyLearning(CrossEntropy(), num_classes=2, num_examples=5, beta=0.5)
        >>> batch = Batch((torch.zeros(1, 2),), torch.tensor([1]), torch.tensor([3]))
        >>> (total,), parts = algorithm.objectives(batch)
        >>> algorithm.targets[3]
        tensor([0.2500, 0.2500])
        >>> print(f"{parts['penalty']:.4f} {total:.4f}")  # log(1 - 0.25), log 2 + 3 log(1 - 0.25)
        -0.2877 -0.1699

    Reference:
        Liu et al., "Early-Learning Regularization Prevents Memorization of Noisy Labels", NeurIPS
        2020.
    """

    summary: ClassVar[str] = "one network, held to a moving average of its own predictions"
    written: ClassVar[Mapping[str, str]] = {"beta": "beta", "lambda": "weight"}

    targets: Tensor

    def __init__(
        self,
        loss: Loss,
        *,
        num_classes: int,
        num_examples: int,
        beta: float = 0.7,
        weight: float = 3.0,
    ):
        super().__init__(loss, num_classes=num_classes, num_examples=num_examples)
        distributed = torch.distributed
        shared = distributed.is_available() and distributed.is_initialized()
        if shared and (processes := distributed.get_world_size()) > 1:
            # Each process would have the predictions of only its own share of the examples.
            raise ValueError(f"processes: expected one for elr, got a run over {processes}")
        self.beta = within("beta", beta, 0, 1)
        self.weight = within("lambda", weight, 0)
        self.register_buffer("targets", torch.zeros(self.num_examples, self.num_classes))

    def objectives(self, batch: Batch) -> Objectives:
        """The loss of the batch plus the penalty, with updated targets."""
        (logits,) = batch.logits
        log_probabilities = torch.log_softmax(logits, dim=1)
        probabilities = log_probabilities.exp().clamp(CLAMP, 1 - CLAMP)
        with torch.no_grad():
            predicted = probabilities / probabilities.sum(dim=1, keepdim=True)
            targets = self.beta * self.targets[batch.index] + (1 - self.beta) * predicted
            self.targets.index_copy_(0, batch.index, targets)
            rate = sparse_rate(log_probabilities).mean()
        base = self.loss(logits, batch.target)
        penalty = torch.log1p(-(targets * probabilities).sum(dim=1)).mean()
        return Objectives(
            (base + self.weight * penalty,),
            {"base": base.detach(), "penalty": penalty.detach(), "sparse_rate": rate},
        )
