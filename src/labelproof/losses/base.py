"""The base of every loss: a module over (logits, target) that also has a value for each label."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor, nn
from typing_extensions import Self

from labelproof.losses.batch import (
    Admitted,
    Outputs,
    Reduction,
    admit,
    check_class_weight,
    fit_weight,
    is_probabilities,
    replace_ignored,
    weigh_classes,
)
from labelproof.losses.gradient import LabelForm, mean_with_gradient
from labelproof.losses.numerics import of_label, own
from labelproof.ranges import flag, whole

if TYPE_CHECKING:
    from labelproof.losses.algebra import WeightedSum


class LossSettings(TypedDict, total=False):
    """Arguments of every loss besides its own hyperparameters, as in torch."""

    reduction: Reduction
    """`"mean"` (the default), `"sum"` or `"none"`."""
    weight: Tensor | None
    """Weight of each class, shape `(C)`."""
    ignore_index: int
    """Integer target that is ignored; -100 by default."""
    check: bool
    """Whether to reject NaN logits and invalid targets, at the cost of a device sync."""


def hyperparameters(kind: type[Loss]) -> dict[str, Any]:
    """The arguments of a loss besides its settings, with their defaults."""
    return {
        each.name: each.default
        for each in inspect.signature(kind).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name not in LossSettings.__annotations__
    }


class Loss(nn.Module):
    """A loss over `(logits, target)` with the inputs of `torch.nn.CrossEntropyLoss`.

    A subclass computes the values of an example for every label (`label_values`) and, if that is
    cheaper, for its own label alone (`index_values`). Validation, class weights, ignored targets,
    probability targets and the reduction are done here. Losses add and scale: `10 * a + 0.1 * b` is
    a loss.
    """

    def __init__(
        self,
        *,
        reduction: Reduction = "mean",
        weight: Tensor | None = None,
        ignore_index: int = -100,
        check: bool = False,
    ):
        super().__init__()
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"reduction: expected 'none', 'mean' or 'sum', got {reduction!r}")
        self.reduction: Reduction = reduction
        self.ignore_index = whole("ignore_index", ignore_index)
        self.check = flag("check", check)
        if weight is not None:
            check_class_weight(weight)
        # Not a buffer: a model built on the meta device fills buffers from a checkpoint, which has
        # no class weights, or leaves them uninitialised.
        self.class_weight = weight

    @abstractmethod
    def label_values(self, outputs: Outputs) -> Tensor:
        """Value of the loss for every possible label, `(N, C, ...)`."""
        raise NotImplementedError(f"{type(self).__name__}: define label_values(self, outputs)")

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value of the loss for the given integer labels, `(N, ...)`."""
        return of_label(self.each_label(outputs), target)

    def each_label(self, outputs: Outputs) -> Tensor:
        """`label_values`, checked to return a value for every class."""
        values = self.label_values(outputs)
        if values.shape != outputs.logits.shape:
            raise ValueError(
                f"label_values: expected {type(self).__name__} to give a value for each class, "
                f"shape {tuple(outputs.logits.shape)}, got shape {tuple(values.shape)}"
            )
        return values

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value of the loss for the given labels, unweighted and unreduced, `(N, ...)`.

        For class probabilities it is the expected value of a label drawn from them.
        """
        if is_probabilities(target):
            return (target * self.each_label(outputs)).sum(dim=1)
        if not outputs.counted:
            target = replace_ignored(target, self.ignore_index)
        return self.index_values(outputs, target)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Loss of a batch.

        Args:
            input: Logits, `(C)`, `(N, C)` or `(N, C, d1, ...)`, any floating-point type. The loss
                is computed, and returned, in float32 or in float64 when the logits are.
            target: Class indices `()`, `(N)` or `(N, d1, ...)`, or class probabilities of the
                logits' shape.

        Returns:
            A scalar, or one value per example when the reduction is `"none"`.
        """
        single = isinstance(input, Tensor) and input.ndim == 1
        logits, target, counted = self.admit(input, target)
        result = self.reduce_batch(Outputs(logits, counted=counted), target)
        return result.squeeze(0) if single and self.reduction == "none" else result

    def admit(self, logits: Tensor, target: Tensor) -> Admitted:
        """Validate a batch against this loss's settings, and add a missing batch axis."""
        admitted = admit(logits, target, ignore_index=self.ignore_index, check=self.check)
        logits, target, _ = admitted
        if self.ignore_index >= 0 and is_probabilities(target):  # torch refuses it, too
            raise ValueError(
                f"ignore_index: expected class indices as the target where {self.ignore_index} is "
                "to be ignored, got class probabilities; leave such examples out of the batch"
            )
        if self.class_weight is not None and len(self.class_weight) != logits.shape[1]:
            raise ValueError(
                f"weight: expected one number for each of {logits.shape[1]} classes, "
                f"got {len(self.class_weight)}"
            )
        return admitted

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move the class weights with the module, to its device and dtype."""
        if self.class_weight is not None:
            self.class_weight = follow(self.class_weight, fn)
        return super()._apply(fn, recurse)

    def reduce_batch(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Loss of a validated batch, for losses built on losses."""
        if outputs.counted and self.reduction == "mean" and self.class_weight is None:
            form = self.label_form()
            if form is not None:
                if form.sharpening is None:
                    mean = form.base.quick_mean(outputs.logits, target)
                else:
                    mean = mean_with_gradient(form, outputs.raw, target)
                if mean is not None:
                    return mean
        values = self.values(outputs, self.weigh(target))
        return self.reduce(values, target, weighed=True, counted=outputs.counted)

    def label_form(self) -> LabelForm | None:
        """The loss as a function of its label's log-probability, or `None` if it is not one.

        The kernels and the explicit gradient are used for such losses.
        """
        return None

    def weigh(self, target: Tensor) -> Tensor:
        """Class probabilities times the class weights; indices as they are."""
        if self.class_weight is None or not is_probabilities(target):
            return target
        # torch applies weights inside the sum over classes here, so they multiply the target.
        return weigh_classes(target, self.class_weight)

    def reduce(
        self,
        values: Tensor,
        target: Tensor,
        *,
        reduction: Reduction | None = None,
        unweighted: bool = False,
        weighed: bool = False,
        counted: bool = False,
    ) -> Tensor:
        """Weigh one value per example by class, drop the ignored ones, and reduce.

        The mean is over the examples that are not ignored, weighted by class as in torch. If all
        are ignored or the batch is empty, the mean is 0, not torch's NaN, so that one such batch
        does not end a run.

        Args:
            values: `(N, ...)`.
            target: The labels, or class probabilities.
            reduction: Replaces this loss's.
            unweighted: Whether to leave the class weights out.
            weighed: Whether values of class probabilities have the class weights already.
            counted: Whether no target is ignored.
        """
        reduction = reduction or self.reduction
        class_weight = None if unweighted else self.class_weight
        soft = is_probabilities(target)
        if soft and class_weight is not None and not weighed:
            values = values * weigh_classes(target.to(values.dtype), class_weight).sum(dim=1)
        if soft or (counted and class_weight is None):
            if reduction == "none":
                return values
            # The sum of no values is 0, and their mean NaN.
            return values.mean() if reduction == "mean" and values.numel() else values.sum()
        target = target.long()  # a foreign loss accepts uint8, in which 156 equals -100
        kept = target != self.ignore_index
        weight = None
        if class_weight is not None:
            labels = replace_ignored(target, self.ignore_index)
            weight = fit_weight(class_weight, values)[labels] * kept
            values = values * weight
        # `where` rather than a product: an ignored example may be infinite, and inf * 0 is NaN.
        values = torch.where(kept, values, 0)
        if reduction == "none":
            return values
        if reduction == "sum":
            return values.sum()
        if weight is None:
            return values.sum() / kept.sum().clamp_min(1)
        total = weight.sum()
        return values.sum() / torch.where(total > 0, total, 1)

    def per_example(self, logits: Tensor, target: Tensor) -> Tensor:
        """One value per example whatever the reduction; class weights are not applied.

        >>> from labelproof import CrossEntropy
        >>> CrossEntropy().per_example(torch.zeros(2, 4), torch.tensor([0, 3]))
        tensor([1.3863, 1.3863])
        """
        single = isinstance(logits, Tensor) and logits.ndim == 1
        logits, target, counted = self.admit(logits, target)
        values = self.values(Outputs(logits, counted=counted), target)
        values = self.reduce(values, target, reduction="none", unweighted=True, counted=counted)
        return values.squeeze(0) if single else values

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        values = {name: getattr(self, name, None) for name in hyperparameters(type(self))}
        return ", ".join(
            f"{name}={value:g}" if type(value) is float else f"{name}={value}"
            for name, value in values.items()
            if not isinstance(value, nn.Module | torch.Generator)
        )

    def set_epoch(self, epoch: float) -> None:
        """Move every schedule inside this loss to `epoch`; does nothing without one."""
        for part in _parts(self):
            part.set_epoch(epoch)

    def set_step(self, step: int, *, steps_per_epoch: int) -> None:
        """Move the schedules to a training step, counted from 0 over the whole run.

        Schedules are evaluated at the step's fraction of an epoch, so the paper's
        schedule moves with every step when its `every` is `1 / steps_per_epoch`.
        """
        if steps_per_epoch < 1:
            raise ValueError(f"steps_per_epoch: expected at least 1, got {steps_per_epoch}")
        self.set_epoch(step / steps_per_epoch)

    @property
    def settings(self) -> LossSettings:
        """The settings of this loss, which losses built on it inherit."""
        return LossSettings(
            reduction=self.reduction,
            weight=self.class_weight,
            ignore_index=self.ignore_index,
            check=self.check,
        )

    def __mul__(self, coefficient: float) -> WeightedSum:
        from labelproof.losses.algebra import WeightedSum

        return WeightedSum([(coefficient, self)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> WeightedSum:
        return self * (1 / divisor)

    def __add__(self, other: Loss) -> WeightedSum:
        from labelproof.losses.algebra import WeightedSum

        return WeightedSum([(1.0, self), (1.0, other)])

    def __radd__(self, other: object) -> Self:
        if other == 0:  # so that the built-in sum() of a list of losses works
            return self
        return NotImplemented


class FormulaLoss(Loss):
    """A loss with the same formula for the given labels and for every label."""

    @abstractmethod
    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """Value for the labels `(N, 1, ...)`, or without them for every label, `(N, C, ...)`."""
        raise NotImplementedError(f"{type(self).__name__}: define formula(self, outputs, labels)")

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every possible label, `(N, C, ...)`."""
        return self.formula(outputs, None)

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given integer labels, `(N, ...)`."""
        return self.formula(outputs, target.unsqueeze(1)).squeeze(1)


class PointwiseLoss(FormulaLoss):
    """A loss that depends only on the probability of the label: L(u, y) = l(log u_y)."""

    label_alone: bool = True
    """Whether `pointwise` is the whole loss; ignored for losses of other packages."""

    def label_form(self) -> LabelForm | None:
        """The loss itself; one of another package may override anything, so torch traces it."""
        ours = type(self).__module__.startswith("labelproof.losses.")
        return LabelForm(self) if ours and self.label_alone else None

    @abstractmethod
    def pointwise(self, log_probability: Tensor) -> Tensor:
        """The loss as a function of the label's log-probability, element by element."""
        raise NotImplementedError(f"{type(self).__name__}: define pointwise(self, log_probability)")

    def each_pointwise(self, log_probability: Tensor) -> Tensor:
        """`pointwise`, checked to return one value for each element."""
        values = self.pointwise(log_probability)
        if values.shape != log_probability.shape:
            raise ValueError(
                f"pointwise: expected {type(self).__name__} to give a value for each element, "
                f"shape {tuple(log_probability.shape)}, got shape {tuple(values.shape)}"
            )
        return values

    def value_and_slope(self, log_probability: Tensor) -> tuple[Tensor, Tensor]:
        """`pointwise` and its derivative, element by element; by autograd unless overridden."""
        with torch.enable_grad():
            leaf = log_probability.detach().requires_grad_()
            values = self.each_pointwise(leaf)
            return values.detach(), torch.autograd.grad(values.sum(), leaf)[0]

    def quick_mean(self, logits: Tensor, target: Tensor) -> Tensor | None:
        """The mean over a batch of integer labels in fewer operations, if a subclass has a way.

        In a small batch, the overhead of an operation exceeds its arithmetic.
        """
        return None

    def formula(self, outputs: Outputs, labels: Tensor | None) -> Tensor:
        """`pointwise` of the log-probabilities."""
        return self.each_pointwise(own(outputs.log_probabilities, labels))


def _parts(module: nn.Module) -> Iterator[Loss]:
    """The losses directly below a module, also inside of torch's containers."""
    for child in module.children():
        if isinstance(child, Loss):
            yield child
        else:
            yield from _parts(child)


def follow(values: Tensor, move: Callable[[Tensor], Tensor]) -> Tensor:
    """Move values to the device and dtype that a module's `_apply` would give them.

    `move` is not applied to the values themselves: `to_empty` leaves memory uninitialised for a
    checkpoint to fill, and these are in no checkpoint. When the module moves to `meta`, which has
    no memory for values, they go to the CPU.
    """
    # A slice of the same memory, so that an in-place move, as to shared memory, takes effect.
    like = move(values[:0])
    return values.to("cpu" if like.is_meta else like.device, like.dtype)
