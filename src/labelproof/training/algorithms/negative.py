"""NLNL: negative learning, then positive learning on the labels that the network predicts.

Positive learning ("this is a 7") is misled by every wrong label. Negative learning ("this is not a
3", the 3 drawn from the other classes) is misled far less often. After it, the labels to which the
network gives a high probability are mostly right, and positive learning can use them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from labelproof.losses import Loss, NegativeLearning, draw_complementary
from labelproof.losses.negative import log_complements
from labelproof.losses.numerics import of_label
from labelproof.ranges import whole, within
from labelproof.training.algorithms.base import Algorithm, Batch, Objectives, selected_mean

BELIEVED = 0.5
"""Probability of the given label above which positive learning uses it."""


class NegativeToPositive(Algorithm):
    r"""Negative learning, then selective negative learning, then selective positive learning.

    1. For `negative_epochs`: negative learning on every example.
    2. For `selective_epochs`: the same on examples whose given label has a probability above
       $1 / C$.
    3. After that: the loss on examples whose given label has a probability above 0.5.

    Each is a mean over the selected examples. For the first stage alone, use `Supervised` with
    negative learning as its loss.

    Args:
        loss: The loss of the last stage; cross entropy in the paper.
        num_classes: Number of classes.
        num_examples: Number of training examples.
        negative_epochs: Length of the first stage: whole epochs, or below 1 a share of `epochs`.
        selective_epochs: Length of the second stage, likewise.
        samples: Number of complementary labels for each example, drawn anew in each step.
        epochs: Length of the run; needed if a stage is a share of it.

    Example:
        >>> from labelproof import CrossEntropy
        >>> algorithm = NegativeToPositive(CrossEntropy(), num_classes=10, num_examples=1, epochs=8)
        >>> for epoch in range(8):
        ...     algorithm.set_epoch(epoch)
        ...     print(epoch, algorithm.stage)
        0 negative
        1 negative
        2 negative
        3 negative
        4 selective
        5 selective
        6 positive
        7 positive

    Reference:
        Kim et al., "NLNL: Negative Learning for Noisy Labels", ICCV 2019.
    """

    summary: ClassVar[str] = "negative learning, then on believed labels only, then positive"
    written: ClassVar[Mapping[str, str]] = {
        "negative": "negative_epochs",
        "selective": "selective_epochs",
        "samples": "samples",
    }

    log_threshold: Tensor
    positive: Tensor

    def __init__(
        self,
        loss: Loss,
        *,
        num_classes: int,
        num_examples: int,
        negative_epochs: float = 0.5,
        selective_epochs: float = 0.25,
        samples: int = 1,
        epochs: int | None = None,
    ):
        super().__init__(loss, num_classes=num_classes, num_examples=num_examples)
        draws = any(isinstance(module, NegativeLearning) for module in loss.modules())
        if draws or loss.class_weight is not None:
            raise ValueError(
                "loss: expected that of the last, positive stage, such as ce, without negative "
                "learning in it (supervised has it alone) and without class weights"
            )
        self.samples = whole("samples", samples, 1)
        first = _length("negative_epochs", negative_epochs, epochs)
        second = _length("selective_epochs", selective_epochs, epochs)
        # The sum is rounded, not each length: two stages of 0.3 in 5 epochs are 2 and 1.
        self.first_selective = round(first)
        self.first_positive = round(first + second)
        if epochs is not None and self.first_positive >= epochs:
            raise ValueError(
                f"epochs: expected more than the {self.first_positive} before positive learning, "
                f"got {epochs}"
            )
        self.register_buffer("log_threshold", torch.zeros(()), persistent=False)
        self.register_buffer("positive", torch.zeros((), dtype=torch.bool), persistent=False)
        self.stage = "negative"
        self.set_epoch(0)

    @property
    def draws(self) -> bool:
        """Always true: labels are drawn in every step, although the last stage ignores them."""
        return True

    def set_epoch(self, epoch: float) -> None:
        """Enter the epoch's stage and update the loss's schedules."""
        super().set_epoch(epoch)
        if epoch < self.first_selective:
            self.stage, threshold = "negative", 0.0
        elif epoch < self.first_positive:
            self.stage, threshold = "selective", 1 / self.num_classes
        else:
            self.stage, threshold = "positive", BELIEVED
        self.log_threshold.fill_(math.log(threshold) if threshold else -math.inf)
        self.positive.fill_(self.stage == "positive")

    def objectives(self, batch: Batch) -> Objectives:
        """The mean loss of the examples that the stage selects."""
        (logits,) = batch.logits
        log_probabilities = torch.log_softmax(logits, dim=1)
        drawn = draw_complementary(
            batch.target, self.num_classes, samples=self.samples, generator=self.generator
        )
        negative = -log_complements(log_probabilities).gather(1, drawn).mean(dim=1)
        # Every stage computes both losses, so that one recorded step serves all three.
        values = torch.where(self.positive, self.loss.per_example(logits, batch.target), negative)
        log_probability = of_label(log_probabilities.detach(), batch.target)
        selected = log_probability > self.log_threshold
        value = selected_mean(values, selected)
        return Objectives((value,), {"selected": selected.float().mean()})


def _length(name: str, length: float, epochs: int | None) -> float:
    if within(name, length, 0) >= 1 or length == 0:
        return whole(name, length)
    if epochs is None:
        raise ValueError(f"{name}: expected whole epochs where epochs is not given, got {length!r}")
    return length * whole("epochs", epochs, 1)
