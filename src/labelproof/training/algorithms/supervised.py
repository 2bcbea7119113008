"""One network, one loss: every example counts, and robustness is the loss's business."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from labelproof.losses import Loss, SparseRegularized, lp_norm, sharpen, sparse_rate
from labelproof.training.algorithms.base import Algorithm, Batch, Objectives, Seen


class Supervised(Algorithm):
    """Minimise the loss on all examples.

    The parts are `base`, `penalty` and `sparse_rate` for a sparse-regularized loss, as its own
    `parts` gives them; for any other the `sparse_rate` of the plain softmax.

    Args:
        loss: What an example costs.
        num_classes: Number of classes.
        num_examples: Number of training examples.

    Example:
        >>> from labelproof import CrossEntropy, SparseRegularized
        >>> loss = SparseRegularized(CrossEntropy(), weight=2)
        >>> algorithm = Supervised(loss, num_classes=2, num_examples=1)
        >>> batch = Batch((torch.tensor([[3.0, 4.0]]),), torch.tensor([1]), torch.tensor([0]))
        >>> (total,), parts = algorithm.objectives(batch)
        >>> sorted(parts)
        ['base', 'penalty', 'sparse_rate']
        >>> torch.allclose(total, parts["base"] + 2 * parts["penalty"])
        True
    """

    takes_weights: ClassVar[bool] = True
    summary: ClassVar[str] = "one network minimises the loss on all examples"

    weight: Tensor
    temperature: Tensor

    def __init__(self, loss: Loss, *, num_classes: int, num_examples: int):
        super().__init__(loss, num_classes=num_classes, num_examples=num_examples)
        # Only for what is reported; the loss has its own, in its own precision.
        self.register_buffer("weight", torch.zeros(()), persistent=False)
        self.register_buffer("temperature", torch.ones(()), persistent=False)
        self._fill()

    def set_epoch(self, epoch: float) -> None:
        """Move the loss's schedules."""
        super().set_epoch(epoch)
        self._fill()

    def objectives(self, batch: Batch) -> Objectives:
        """The loss of the batch."""
        (logits,) = batch.logits
        if batch.weight is not None:
            return self._weighed(logits, batch.target, batch.weight)
        if not isinstance(self.loss, SparseRegularized):
            value = self.loss(logits, batch.target)
            with torch.no_grad():
                rate = sparse_rate(torch.log_softmax(logits, dim=1)).mean()
            return Objectives((value,), {"sparse_rate": rate})
        if not _plain(self.loss):
            parts = self.loss.parts(logits, batch.target)
            return Objectives(
                (parts.total,),
                {
                    "base": parts.base.detach(),
                    "penalty": parts.penalty.detach(),
                    "sparse_rate": parts.sparse_rate,
                },
            )
        value = self.loss(logits, batch.target)
        return Objectives((value,), self._parts(value.detach(), logits.detach()))

    @property
    def defers(self) -> bool:
        """Whether the parts follow from the logits and the loss."""
        # A subclass with objectives of its own has parts of its own.
        own = type(self).objectives is Supervised.objectives
        return own and (not isinstance(self.loss, SparseRegularized) or _plain(self.loss))

    def losses(self, batch: Batch) -> tuple[Tensor, ...]:
        """The loss of the batch alone."""
        (logits,) = batch.logits
        if batch.weight is not None:
            return (self._weighed_mean(logits, batch.target, batch.weight),)
        return (self.loss(logits, batch.target),)

    @torch.no_grad()
    def see(self, logits: Tensor) -> Seen:
        """The outputs as the loss sees them."""
        loss = self.loss
        if not isinstance(loss, SparseRegularized):
            return Seen(torch.log_softmax(logits, dim=1), None)
        sharp = sharpen(logits, temperature=self.temperature, normalize=loss.normalize)
        log_probabilities = torch.log_softmax(sharp, dim=1)
        return Seen(log_probabilities, lp_norm(log_probabilities, p=loss.p, clamp=loss.clamp))

    def example_parts(self, totals: Tensor, seen: Seen) -> dict[str, Tensor]:
        """The parts of `objectives`, example by example."""
        rate = sparse_rate(seen.log_probabilities)
        if seen.penalty is None:
            return {"sparse_rate": rate}
        penalty = seen.penalty.view(-1)
        base = totals - self.weight * penalty
        return {"base": base, "penalty": penalty, "sparse_rate": rate}

    def _weighed_mean(self, logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        values = self.loss.per_example(logits, target)
        if self.loss.class_weight is not None:
            weight = weight * self.loss.class_weight[target].to(weight.dtype)
        # Divided by the number of examples and not by the sum of their weights, so that a weight of
        # 2 is the example twice, whatever else is in the batch; weights have a mean of 1.
        return (values * weight).mean()

    def _weighed(self, logits: Tensor, target: Tensor, weight: Tensor) -> Objectives:
        value = self._weighed_mean(logits, target, weight)
        with torch.no_grad():
            rate = sparse_rate(self.see(logits).log_probabilities).mean()
        return Objectives((value,), {"sparse_rate": rate})

    @torch.no_grad()
    def _parts(self, value: Tensor, logits: Tensor) -> dict[str, Tensor]:
        # On a batch of 128 x 10 a step's price is its number of kernels. The loss itself is two
        # fused ones on CUDA; `loss.parts` would replace them by some forty, twice over with the
        # backward pass. Sharpening once more without a gradient takes a few, and the base loss,
        # whatever it is and whatever it draws, is what the penalty leaves of the total. That
        # difference is good to the total's last digits, which is plenty for a log.
        log_probabilities, penalties = self.see(logits)
        assert penalties is not None  # noqa: S101
        penalty = penalties.mean()
        return {
            "base": value - self.weight * penalty,
            "penalty": penalty,
            "sparse_rate": sparse_rate(log_probabilities).mean(),
        }

    def _fill(self) -> None:
        if isinstance(self.loss, SparseRegularized):
            self.weight.fill_(self.loss.weight)
            self.temperature.fill_(self.loss.temperature)


def _plain(loss: SparseRegularized) -> bool:
    """Whether the penalty is the mean l_p norm: no class weights, smoothing or foreign base."""
    return (
        isinstance(loss.base, Loss)
        and loss.class_weight is None
        and loss.vector is None
        and loss.smoothing == 0
    )
