"""What a learning algorithm is: from the logits of a batch to what each network minimises."""

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
    """The examples of a step, with the networks' logits.

    Attributes:
        logits: For each network `(B, C)` in float32.
        target: The given, possibly wrong, labels, `(B)`.
        index: Which training examples these are, `(B)`.
        weight: The weight of each example, `(B)`, or `None` for equal weights.
    """

    logits: tuple[Tensor, ...]
    target: Tensor
    index: Tensor
    weight: Tensor | None = None


class Objectives(NamedTuple):
    """What a step minimises, and the parts of it to log."""

    losses: tuple[Tensor, ...]
    """For each network the scalar it minimises, a mean over the batch."""
    parts: dict[str, Tensor]
    """Scalars without gradient; the names stay the same during a run."""


class Algorithm(nn.Module, ABC):
    """Turns the logits and labels of a batch into what each network minimises.

    A step is recorded once and replayed, so `objectives` must be a pure tensor function: it reads
    no value back, no shape depends on a value, and whatever changes with the epoch is a tensor that
    `set_epoch` fills in place. Persistent buffers are saved in checkpoints.

    Args:
        loss: What an example costs; its reduction is the mean.
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
    """How many networks learn side by side."""
    summary: ClassVar[str] = ""
    """What it does, in one line."""
    takes_weights: ClassVar[bool] = False
    """Whether examples may count differently."""
    written: ClassVar[Mapping[str, str]] = {}
    """Arguments that can be written in text: the name there and the constructor's."""

    loss: Loss

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
        """Whether a step takes random numbers, as negative learning inside the loss does.

        Whoever records a step must register the generator, and cannot compile the draws.
        """
        return any(
            isinstance(module, NegativeLearning) and not module.expected
            for module in self.modules()
        )

    def part_names(self, device: torch.device, *, weighted: bool = False) -> list[str]:
        """What the parts of `objectives` are called, by asking about two made-up examples."""
        two = torch.arange(2, device=device)
        logits = (torch.zeros(2, self.num_classes, device=device),) * self.num_networks
        kept = {name: buffer.clone() for name, buffer in self.named_buffers()}
        weight = torch.ones(2, device=device) if weighted else None
        names = list(self.objectives(Batch(logits, two, two, weight)).parts)
        for name, buffer in self.named_buffers():
            buffer.copy_(kept[name])
        return names

    @abstractmethod
    def objectives(self, batch: Batch) -> Objectives:
        """What each network minimises on this batch, without reading a value back."""

    def set_epoch(self, epoch: float) -> None:
        """Move everything that depends on the epoch, counted from 0; called before it starts."""
        self.loss.set_epoch(epoch)

    def after_epoch(self, epoch: int) -> None:
        """Work between two epochs, where values may be read; called when `epoch` has ended."""

    def use_generator(self, generator: torch.Generator | None) -> None:
        """Take every draw from `generator`, those of negative learning inside the loss too."""
        self.generator = generator
        for module in self.modules():
            if isinstance(module, NegativeLearning):
                module.generator = generator


def selected_mean(values: Tensor, selected: Tensor) -> Tensor:
    """Mean of the selected values, and 0 with a gradient of 0 where none is selected.

    Args:
        values: `(B)`.
        selected: Which of them count, `(B)`, as booleans.

    Example:
        >>> values = torch.tensor([1.0, 2.0, torch.inf])
        >>> selected_mean(values, torch.tensor([True, True, False]))
        tensor(1.5000)
        >>> selected_mean(values, torch.tensor([False, False, False]))
        tensor(0.)
    """
    # `where` rather than a product: an example left out may cost infinity, and inf * 0 is NaN.
    return torch.where(selected, values, 0).sum() / selected.sum().clamp_min(1)


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


def _plain(loss: SparseRegularized) -> bool:
    """Whether the penalty is the mean l_p norm: no class weights, smoothing or foreign base."""
    return (
        isinstance(loss.base, Loss)
        and loss.class_weight is None
        and loss.vector is None
        and loss.smoothing == 0
    )
