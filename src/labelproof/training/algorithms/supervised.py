"""One network, one loss: every example counts, and robustness is the loss's business."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from labelproof.losses import Loss, SparseRegularized, lp_norm, sharpen, sparse_rate
from labelproof.training.algorithms.base import Algorithm, Batch, Objectives


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
        loss, target, weight = self.loss, batch.target, batch.weight
        if weight is not None:
            values = loss.per_example(logits, target)
            if loss.class_weight is not None:
                weight = weight * loss.class_weight[target].to(weight.dtype)
            # Divided by the number of examples and not by the sum of their weights, so that a
            # weight of 2 is the example twice, whatever else is in the batch; weights have a mean
            # of 1.
            value = (values * weight).mean()
        elif isinstance(loss, SparseRegularized) and not _plain(loss):
            parts = loss.parts(logits, target)
            named = {"base": parts.base.detach(), "penalty": parts.penalty.detach()}
            return Objectives((parts.total,), {**named, "sparse_rate": parts.sparse_rate})
        else:
            value = loss(logits, target)
        # On a batch of 128 x 10 a step's price is its number of kernels. The loss itself is two
        # fused ones on CUDA; `loss.parts` would replace them by some forty, twice over with the
        # backward pass. Sharpening once more without a gradient takes a few, and the base loss,
        # whatever it is and whatever it draws, is what the penalty leaves of the total. That
        # difference is good to the total's last digits, which is plenty for a log.
        with torch.no_grad():
            named: dict[str, Tensor] = {}
            if isinstance(loss, SparseRegularized):
                logits = sharpen(logits, temperature=self.temperature, normalize=loss.normalize)
            log_probabilities = torch.log_softmax(logits, dim=1)
            if isinstance(loss, SparseRegularized) and weight is None:
                penalty = lp_norm(log_probabilities, p=loss.p, clamp=loss.clamp).mean()
                named = {"base": value.detach() - self.weight * penalty, "penalty": penalty}
            named["sparse_rate"] = sparse_rate(log_probabilities).mean()
        return Objectives((value,), named)

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
