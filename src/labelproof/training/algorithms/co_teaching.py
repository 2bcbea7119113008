r"""Co-teaching: two networks, and each learns from what the other finds easy.

A network learns right labels before it memorises wrong ones, so early on the examples that cost
much are the suspicious ones. A network that drops them by its own judgement confirms its own
mistakes; one that drops what its peer finds hard does not.
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
"""Epochs before the noise rate is first estimated. During the first the examples seen early are
judged by a network that knows nothing, which says more about their place than their label."""

HIGHEST = 0.9
"""The largest noise rate that is estimated; beyond it there would be nothing to learn from."""


class CoTeaching(Algorithm):
    r"""Train each network on the cheapest share of the batch as its peer sees it.

    At epoch $t$ the share that is left out is $R(t) = \epsilon \min(t / T_k, 1)^c$. Here $t$ counts
    the epochs that are over, so the first epoch keeps every example and epoch $T_k$ is the first
    to leave out the full rate $\epsilon$. That is the paper's algorithm, which updates its rate at
    the end of an epoch; its published code starts one step further on.

    Without a noise rate nothing is left out for two epochs. Then the rate is estimated from what
    the examples cost the first network (see `estimate_noise_rate`), again after each epoch until
    the ramp ends, and the mean of the estimates so far is taken. The first ones are too high
    where few labels are wrong, since right ones are costly still; the last ones are too low where
    many are, since wrong ones are being memorised.

    Args:
        loss: What an example costs; examples are ranked by it too.
        num_classes: Number of classes.
        num_examples: Number of training examples.
        noise_rate: Share of wrong labels, $\epsilon$; estimated unless given.
        ramp_epochs: Epochs until the full rate is left out, $T_k$.
        exponent: Shape of the ramp, $c$; above 1 it starts more gently.

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
        # The rate is saved, for an estimate cannot be made again after a resume; so is what it is
        # made from, so that it does not matter on which side of `after_epoch` a run was saved.
        self.register_buffer("noise_rate", torch.tensor(rate))
        seen = torch.full((self.num_examples,), torch.nan) if self.estimates else None
        self.register_buffer("example_losses", seen)
        self.register_buffer("forget_rate", torch.zeros(()), persistent=False)
        self.set_epoch(0)

    def set_epoch(self, epoch: float) -> None:
        """Move the share that is left out, and the loss's schedules."""
        super().set_epoch(epoch)
        progress = min(epoch / self.ramp_epochs, 1.0) if self.ramp_epochs else 1.0
        self.forget_rate.copy_(self.noise_rate * progress**self.exponent)

    def objectives(self, batch: Batch) -> Objectives:
        """For each network the mean loss of the examples its peer would keep."""
        first, second = (self.loss.per_example(logits, batch.target) for logits in batch.logits)
        # One sort for both, but two separate graphs behind the losses, so that neither network
        # hears of the other's gradient and either backward pass can run alone.
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
        """Estimate the noise rate where none was given, until the ramp has ended."""
        over = epoch + 1
        if self.example_losses is not None and WARM_UP <= over <= max(self.ramp_epochs, WARM_UP):
            estimate = estimate_noise_rate(self.example_losses.cpu().numpy())
            # How many there were follows from the epoch, so their mean needs no list of them.
            number = over - WARM_UP + 1
            self.noise_rate.lerp_(torch.full_like(self.noise_rate, estimate), 1 / number)


def smallest(costs: Tensor, share: Tensor) -> Tensor:
    """Mark the cheapest share of each row, the number rounded down but at least one.

    Of examples that cost the same the one that comes first is kept; what costs NaN is kept last.

    Args:
        costs: `(..., B)`.
        share: A number between 0 and 1, as a tensor without axes.

    Returns:
        Booleans of the same shape.

    Example:
        >>> smallest(torch.tensor([3.0, 1.0, 1.0, 1.0]), torch.tensor(0.5))
        tensor([False,  True,  True, False])
    """
    size = costs.shape[-1]
    # In float32 a share of 1 - 0.9 of ten examples is a little less than one.
    count = (share * (size * (1 + 1e-6))).floor().clamp_min(1)
    # The number moves with the epoch, so it may not become a shape: ranks are compared instead.
    ranks = costs.argsort(dim=-1, stable=True).argsort(dim=-1)
    return ranks < count


def estimate_noise_rate(losses: ArrayLike) -> float:
    """Share of wrong labels, as the weight of the costly part of a mixture of two Gaussians.

    The losses are scaled to [0, 1] first. Examples whose loss is not finite, because they were not
    seen yet, do not count. The tail of the right labels goes to the costly part too, so that even
    clean labels come out above zero.

    Args:
        losses: One for each example, from a network that has begun to learn but not to memorise.

    Returns:
        A number between 0 and 0.9; 0 where all losses are the same.

    Example:
        >>> estimate_noise_rate([0.1, 0.2, 0.15, 4.0, 0.1, 0.2, 0.15, 4.1])
        0.25

    Reference:
        Li et al., "DivideMix: Learning with Noisy Labels as Semi-supervised Learning", ICLR 2020.
    """
    # Imported here: scikit-learn takes a second, and most runs know their noise rate.
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
