r"""Co-teaching: each of two networks learns from the examples with small loss in the other.

A network learns right labels before it memorises wrong ones, so early in training a large loss
points to a wrong label. A network that selects by its own loss confirms its own mistakes; one that
selects by its peer's does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from labelproof.losses import Loss
from labelproof.ranges import within
from labelproof.training.algorithms.base import Algorithm, Batch, Objectives, selected_mean

WARM_UP = 2
"""Epochs before the noise rate is first estimated. In the first epoch the network is still
untrained, so a loss depends more on when the example came than on its label."""

HIGHEST = 0.9
"""The largest estimate of the noise rate; with more there is nothing left to learn from."""


class CoTeaching(Algorithm):
    r"""Train each network on the examples of the batch that have the smallest loss in its peer.

    At epoch $t$ the share left out is $R(t) = \epsilon \min(t / T_k, 1)^c$. Here $t$ counts the
    finished epochs, so the first epoch keeps every example and epoch $T_k$ is the first to leave
    out the full rate $\epsilon$. This is the paper's algorithm, which updates the rate at the end
    of an epoch; its published code is one epoch ahead.

    Without a noise rate nothing is left out for two epochs. Then the rate is estimated from the
    losses of the first network (see `estimate_noise_rate`) after each epoch until the ramp ends;
    the mean of the estimates so far is used. Early estimates are too high where few labels are
    wrong, because right ones still have a large loss; late ones are too low where many are wrong,
    because they are being memorised.

    Args:
        loss: The loss, which also ranks the examples.
        num_classes: Number of classes.
        num_examples: Number of training examples.
        noise_rate: Share of wrong labels, $\epsilon$; estimated by default.
        ramp_epochs: Epochs until the share left out is the full rate, $T_k$.
        exponent: Shape of the ramp, $c$; above 1 it starts more slowly.

    Example:
        >>> from labelproof import CrossEntropy
        >>> algorithm = CoTeaching(
        ...     CrossEntropy(), num_classes=2, num_examples=50_000, noise_rate=0.5, ramp_epochs=4
        ... )
        >>> for epoch in (0, 2, 4, 9):
        ...     algorithm.set_epoch(epoch)
        ...     print(float(algorithm.forget_rate))
        0.0
        0.25
        0.5
        0.5

    Reference:
        Han et al., "Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy
        Labels", NeurIPS 2018.
    """

    num_networks: ClassVar[int] = 2
    summary: ClassVar[str] = "two networks, each trained on the examples its peer finds easiest"
    written: ClassVar[Mapping[str, str]] = {
        "rate": "noise_rate",
        "ramp": "ramp_epochs",
        "exponent": "exponent",
    }

    noise_rate: Tensor
    forget_rate: Tensor
    example_losses: Tensor | None

    def __init__(
        self,
        loss: Loss,
        *,
        num_classes: int,
        num_examples: int,
        noise_rate: float | None = None,
        ramp_epochs: float = 10,
        exponent: float = 1,
    ):
        super().__init__(loss, num_classes=num_classes, num_examples=num_examples)
        if loss.class_weight is not None:
            raise ValueError("loss: expected no class weights, which the ranking ignores")
        self.estimates = noise_rate is None
        self.ramp_epochs = within("ramp_epochs", ramp_epochs, 0)
        self.exponent = within("exponent", exponent, 0, open_low=True)
        rate = 0.0 if noise_rate is None else within("noise_rate", noise_rate, 0, 1)
        # The rate is saved, because it cannot be estimated again after resuming; the losses are
        # saved, so that a run may be saved before or after `after_epoch`.
        self.register_buffer("noise_rate", torch.tensor(rate))
        unseen = torch.full((self.num_examples,), torch.nan) if self.estimates else None
        self.register_buffer("example_losses", unseen)
        self.register_buffer("forget_rate", torch.zeros(()), persistent=False)
        self.set_epoch(0)

    def set_epoch(self, epoch: float) -> None:
        """Update the share left out and the loss's schedules."""
        super().set_epoch(epoch)
        progress = min(epoch / self.ramp_epochs, 1.0) if self.ramp_epochs else 1.0
        self.forget_rate.copy_(self.noise_rate * progress**self.exponent)

    def objectives(self, batch: Batch) -> Objectives:
        """For each network, the mean loss of the examples that its peer selects."""
        first, second = (self.loss.per_example(logits, batch.target) for logits in batch.logits)
        # One sort for both, but two separate graphs behind the losses, so that no gradient flows
        # from one network to the other and either backward pass can run alone.
        costs = torch.stack([first, second]).detach()
        if self.example_losses is not None:
            self.example_losses.index_copy_(0, batch.index, costs[0].to(self.example_losses.dtype))
        kept_by_first, kept_by_second = smallest(costs, 1 - self.forget_rate).unbind()
        losses = selected_mean(first, kept_by_second), selected_mean(second, kept_by_first)
        return Objectives(
            losses,
            {
                "kept": kept_by_first.float().mean(),
                "first_loss": losses[0].detach(),
                "second_loss": losses[1].detach(),
            },
        )

    def after_epoch(self, epoch: int) -> None:
        """Estimate the noise rate if none was given, until the ramp has ended."""
        done = epoch + 1
        if self.example_losses is not None and WARM_UP <= done <= max(self.ramp_epochs, WARM_UP):
            estimate = estimate_noise_rate(self.example_losses.cpu().numpy())
            # The epoch gives the number of estimates, so a running mean needs no other state.
            number = done - WARM_UP + 1
            self.noise_rate.lerp_(torch.full_like(self.noise_rate, estimate), 1 / number)


def smallest(costs: Tensor, share: Tensor) -> Tensor:
    """Select the smallest share of each row, rounded down but at least one.

    Of equal values the first is selected; NaN counts as the largest.

    Args:
        costs: `(..., B)`.
        share: A number between 0 and 1, as a scalar tensor.

    Returns:
        Booleans of the same shape.

    Example:
        >>> smallest(torch.tensor([3.0, 1.0, 1.0, 1.0]), torch.tensor(0.5))
        tensor([False,  True,  True, False])
    """
    size = costs.shape[-1]
    # In float32, 1 - 0.9 of ten examples is slightly less than one.
    count = (share * (size * (1 + 1e-6))).floor().clamp_min(1)
    # The count changes with the epoch, so it must not become a shape: compare ranks instead.
    ranks = costs.argsort(dim=-1, stable=True).argsort(dim=-1)
    return ranks < count


def estimate_noise_rate(losses: ArrayLike) -> float:
    """Share of wrong labels: the weight of the upper component of a mixture of two Gaussians.

    The losses are scaled to [0, 1] first. Losses that are not finite, of examples not seen yet, are
    ignored. The upper component also takes the tail of the right labels, so the estimate is above
    zero even for clean labels.

    Args:
        losses: One for each example, from a network that has started to learn but not to memorise.

    Returns:
        A number between 0 and 0.9; 0 if all losses are equal.

    Example:
        >>> estimate_noise_rate([0.1, 0.2, 0.15, 4.0, 0.1, 0.2, 0.15, 4.1])
        0.25

    Reference:
        Li et al., "DivideMix: Learning with Noisy Labels as Semi-supervised Learning", ICLR 2020.
    """
    # Imported here: scikit-learn takes a second to import, and most runs do not need it.
    from sklearn.mixture import GaussianMixture

    values = np.asarray(losses, dtype=np.float64).reshape(-1)
    values = values[np.isfinite(values)]
    if len(values) < 2 or values.min() == values.max():
        return 0.0
    scaled = (values - values.min()) / (values.max() - values.min())
    mixture: Any = GaussianMixture(2, tol=1e-2, max_iter=1000, reg_covar=5e-4, random_state=0)
    mixture.fit(scaled[:, None])
    rate = float(mixture.weights_[mixture.means_[:, 0].argmax()])
    return min(max(round(rate, 6), 0.0), HIGHEST)
