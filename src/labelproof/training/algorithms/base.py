"""The base class of learning algorithms, and supervised learning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from labelproof.losses import Loss, NegativeLearning, Outputs, SparseRegularized, sparse_rate
from labelproof.ranges import whole


@dataclass(frozen=True)
class Batch:
    """The examples of a step and the networks' logits.

    Attributes:
        logits: Of each network, `(B, C)`, float32.
        target: The given, possibly wrong, labels, `(B)`.
        index: Indices of the training examples, `(B)`.
        weight: The weight of each example, `(B)`, or `None` for equal weights.
    """

    logits: tuple[Tensor, ...]
    target: Tensor
    index: Tensor
    weight: Tensor | None = None


class Objectives(NamedTuple):
    """The losses that a step minimises, and the values to log."""

    losses: tuple[Tensor, ...]
    """The mean loss of the batch for each network, a scalar."""
    parts: dict[str, Tensor]
    """Scalars without gradient, by name; a run always has the same names."""


class Algorithm(nn.Module, ABC):
    """Turns the logits and labels of a batch into what each network minimises.

    A step is recorded once and replayed, so `objectives` must be a pure tensor function: it copies
    no value to the host, no shape depends on a value, and what changes with the epoch is a tensor
    that `set_epoch` fills in place. Persistent buffers are saved in checkpoints.

    Args:
        loss: The loss; its reduction is the mean.
        num_classes: Number of classes.
        num_examples: Number of training examples.

    Example:
        >>> from labelproof import CrossEntropy
        >>> class Doubled(Algorithm):
        ...     summary = "twice the loss"
        ...
        ...     def objectives(self, batch: Batch) -> Objectives:
        ...         return Objectives((2 * self.loss(batch.logits[0], batch.target),), {})
        >>> algorithm = Doubled(CrossEntropy(), num_classes=2, num_examples=1)
        >>> batch = Batch((torch.zeros(1, 2),), torch.tensor([1]), torch.tensor([0]))
        >>> algorithm.objectives(batch).losses
        (tensor(1.3863),)
    """

    num_networks: ClassVar[int] = 1
    """Number of networks trained together."""
    summary: ClassVar[str] = ""
    """One line of description."""
    takes_weights: ClassVar[bool] = False
    """Whether examples may have weights."""
    written: ClassVar[Mapping[str, str]] = {}
    """Arguments that the text may have: from the name there to the constructor's."""

    def __init__(self, loss: Loss, *, num_classes: int, num_examples: int):
        super().__init__()
        if loss.reduction != "mean":
            raise ValueError(f"loss: expected the reduction 'mean', got {loss.reduction!r}")
        self.loss = loss
        self.num_classes = whole("num_classes", num_classes, 2)
        self.num_examples = whole("num_examples", num_examples, 1)
        self.generator: torch.Generator | None = None

    @property
    def draws(self) -> bool:
        """Whether a step draws random numbers, as negative learning does.

        Such a step cannot be compiled, and its generator must be registered before recording.
        """
        return any(
            isinstance(module, NegativeLearning) and not module.expected
            for module in self.modules()
        )

    def part_names(self, device: torch.device, *, weighted: bool = False) -> list[str]:
        """The names of the parts of `objectives`, from a call with two made-up examples."""
        two = torch.arange(2, device=device)
        logits = (torch.zeros(2, self.num_classes, device=device),) * self.num_networks
        saved = {name: buffer.clone() for name, buffer in self.named_buffers()}
        weight = torch.ones(2, device=device) if weighted else None
        names = list(self.objectives(Batch(logits, two, two, weight)).parts)
        for name, buffer in self.named_buffers():
            buffer.copy_(saved[name])
        return names

    @abstractmethod
    def objectives(self, batch: Batch) -> Objectives:
        """What each network minimises on this batch; must not copy a value to the host."""

    def set_epoch(self, epoch: float) -> None:
        """Update what depends on the epoch, counted from 0; called before it starts."""
        self.loss.set_epoch(epoch)

    def after_epoch(self, epoch: int) -> None:
        """Called when `epoch` has ended; may copy values to the host."""

    def use_generator(self, generator: torch.Generator | None) -> None:
        """Draw all random numbers from `generator`, also those of negative learning in the loss."""
        self.generator = generator
        for module in self.modules():
            if isinstance(module, NegativeLearning):
                module.generator = generator


def selected_mean(values: Tensor, selected: Tensor) -> Tensor:
    """Mean of the selected values; 0, with a gradient of 0, if none is selected.

    Args:
        values: `(B)`.
        selected: `(B)`, booleans.

    Example:
        >>> values = torch.tensor([1.0, 2.0, torch.inf])
        >>> selected_mean(values, torch.tensor([True, True, False]))
        tensor(1.5000)
        >>> selected_mean(values, torch.tensor([False, False, False]))
        tensor(0.)
    """
    # `where`, not a product: the loss of an example left out may be infinite, and inf * 0 is NaN.
    return torch.where(selected, values, 0).sum() / selected.sum().clamp_min(1)


class Supervised(Algorithm):
    """Minimise the loss on all examples.

    The parts of a sparse-regularized loss are `base`, `penalty` and `sparse_rate`, as its method
    `parts` returns them; any other loss has the `sparse_rate` of the softmax.

    Args:
        loss: The loss.
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

    def objectives(self, batch: Batch) -> Objectives:
        """The loss of the batch."""
        (logits,) = batch.logits
        loss, target, weight = self.loss, batch.target, batch.weight
        if weight is not None:
            values = loss.per_example(logits, target)
            if loss.class_weight is not None:
                weight = weight * loss.class_weight[target].to(weight.dtype)
            # Divided by the number of examples, not by the sum of their weights, so that a weight
            # of 2 counts twice whatever else is in the batch; the mean weight is 1.
            value = (values * weight).mean()
        elif isinstance(loss, SparseRegularized) and not (
            isinstance(loss.base, Loss) and loss.one_hot and loss.class_weight is None
        ):
            parts = loss.parts(logits, target)
            named = {"base": parts.base.detach(), "penalty": parts.penalty.detach()}
            return Objectives((parts.total,), {**named, "sparse_rate": parts.sparse_rate})
        else:
            value = loss(logits, target)
        # On a batch of 128 x 10 the time of a step is that of launching its kernels. On CUDA the
        # loss is two fused kernels; `loss.parts` would be some forty, and as many in the backward
        # pass. Sharpening again without a gradient takes a few, and the base loss is the total
        # less the penalty, also if it draws. The difference is exact enough for a log.
        with torch.no_grad():
            named: dict[str, Tensor] = {}
            outputs = Outputs(logits)
            if isinstance(loss, SparseRegularized):
                outputs = loss.sharpen(outputs)
                if weight is None:
                    penalty = loss.penalty(outputs).mean()
                    named = {
                        "base": value.detach() - loss.weigh_penalty(penalty),
                        "penalty": penalty,
                    }
            named["sparse_rate"] = sparse_rate(outputs.log_probabilities).mean()
        return Objectives((value,), named)
