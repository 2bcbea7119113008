"""The steps of a batch through a loss: validation, outputs and class weights.

The shapes are those of `torch.nn.CrossEntropyLoss`: logits `(C)`, `(N, C)` or `(N, C, d1, ...)`;
integer targets without the class axis, or class probabilities of the logits' own shape.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor


def class_axis(logits: Tensor) -> int:
    """The axis of the classes: 0 for a single example, else 1."""
    return 0 if logits.ndim == 1 else 1


def working_precision(logits: Tensor) -> Tensor:
    """Convert half precisions to float32; float32 and float64 stay.

    A log-softmax in bfloat16 has three digits, which leaves none of `exp(p * log u)`.
    """
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def is_probabilities(target: Tensor) -> bool:
    """Whether the target holds class probabilities rather than class indices."""
    return target.is_floating_point()


class Admitted(NamedTuple):
    """A validated batch."""

    logits: Tensor
    """`(N, C, ...)`, in their original precision."""
    target: Tensor
    """Class indices `(N, ...)`, or class probabilities `(N, C, ...)` in working precision."""
    counted: bool
    """Whether every target is known to be a class and not ignored; False if not checked."""


def admit(logits: Tensor, target: Tensor, *, ignore_index: int, check: bool = False) -> Admitted:
    """Check logits and target and return both with a batch axis, classes on axis 1.

    The logits keep their precision; class probabilities are converted to the working one.

    The range of targets is checked only where that costs nothing: on the CPU outside a compiled
    graph. With `check` it is checked everywhere, and so are the logits.

    Raises:
        TypeError: An invalid dtype.
        ValueError: An invalid shape or value.
    """
    admit_logits(logits, check=check)
    kind = target.dtype if isinstance(target, Tensor) else type(target).__name__
    if not isinstance(target, Tensor) or target.dtype == torch.bool or target.is_complex():
        raise TypeError(
            f"target: expected a tensor of class indices or class probabilities, got {kind}"
        )
    axis, counted = class_axis(logits), False
    if is_probabilities(target):
        _admit_probabilities(logits, target, check=check)
        target = target.to(working_precision(logits).dtype)
    else:
        expected = (*logits.shape[:axis], *logits.shape[axis + 1 :])
        if tuple(target.shape) != expected:
            one_hot = target.shape == logits.shape
            hint = "; of one-hot labels give .float() or .argmax(dim=1)" if one_hot else ""
            raise ValueError(
                f"target: expected shape {expected} for logits of shape {tuple(logits.shape)}, "
                f"got {tuple(target.shape)}{hint}"
            )
        # First, since in uint8 156 equals an ignore_index of -100, and torch supports few
        # operations on wider unsigned types.
        target = target.long()
        if may_read(target, check=check):
            counted = _check_range(target, logits.shape[axis], ignore_index)
    if logits.ndim == 1:
        return Admitted(logits.unsqueeze(0), target.unsqueeze(0), counted)
    return Admitted(logits, target, counted)


def admit_logits(logits: Tensor, *, check: bool = False) -> None:
    """Check the logits alone; `admit` does it as its first step."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        got = logits.dtype if isinstance(logits, Tensor) else type(logits).__name__
        raise TypeError(f"logits: expected a floating-point tensor, got {got}")
    if logits.ndim == 0:
        raise ValueError("logits: expected shape (C), (N, C) or (N, C, d1, ...), got a scalar")
    # An empty batch is allowed, as in torch, such as the last of a filtered loader.
    if logits.shape[class_axis(logits)] == 0:
        raise ValueError(f"logits: expected at least one class, got shape {tuple(logits.shape)}")
    if check and _has_values(logits):
        bad = ~torch.isfinite(logits.detach())
        if bool(bad.any()):
            place = tuple(bad.nonzero()[0].tolist())
            raise ValueError(
                f"logits: expected finite values, got {int(bad.sum())} of {bad.numel()} NaN or "
                f"infinite, the first at index {place}"
            )


def check_class_weight(weight: Tensor) -> None:
    """Refuse class weights that are not one non-negative number per class."""
    if not isinstance(weight, Tensor) or weight.ndim != 1 or not weight.is_floating_point():
        got = f"{weight.dtype} {tuple(weight.shape)}" if isinstance(weight, Tensor) else weight
        raise ValueError(
            f"weight: expected a floating-point tensor with one number per class, (C), got {got!r}"
        )
    if bool((weight < 0).any()) or not bool(torch.isfinite(weight).all()):
        raise ValueError(f"weight: expected finite numbers of at least 0, got {weight.tolist()}")


def _admit_probabilities(logits: Tensor, target: Tensor, *, check: bool) -> None:
    if target.shape != logits.shape:
        raise ValueError(
            f"target: a floating-point target holds class probabilities and takes the logits' "
            f"shape {tuple(logits.shape)}, got {tuple(target.shape)}; for class indices give an "
            "integer tensor"
        )
    if check and _has_values(target):
        totals = target.sum(dim=class_axis(logits))
        if bool((target < 0).any()) or not torch.allclose(
            totals, torch.ones_like(totals), atol=1e-3
        ):
            raise ValueError("target: expected class probabilities, at least 0 and adding up to 1")


def may_read(tensor: Tensor, *, check: bool = False) -> bool:
    """Whether a tensor's values can be read without a device sync or a graph break."""
    return (check or tensor.device.type == "cpu") and _has_values(tensor)


def is_plain(logits: Tensor, target: Tensor) -> bool:
    """Whether an explicit gradient applies: `(N, C)`, class indices, eager mode."""
    return (
        logits.ndim == 2
        and logits.shape[0] > 0
        and not is_probabilities(target)
        and _has_values(logits)
        # A dual tensor carries a forward-mode derivative.
        and torch.autograd.forward_ad.unpack_dual(logits).tangent is None
    )


def _has_values(tensor: Tensor) -> bool:
    """Whether a tensor holds values, and is not a placeholder in a traced graph."""
    return (
        not torch.compiler.is_compiling()
        and type(tensor) in (Tensor, torch.nn.Parameter)  # no fake tensor, nor another subclass
        # `make_fx` and `FakeTensorMode` intercept every operation, some with shapes only.
        and torch._C._len_torch_dispatch_stack() == 0
        # Inside torch.func the tensor is a wrapper, and stands for many values at once.
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # pyright: ignore
    )


def _check_range(target: Tensor, num_classes: int, ignore_index: int) -> bool:
    """Refuse a target out of range; returns whether it is certain that none is ignored."""
    if not target.numel():
        return False
    lowest, highest = target.aminmax()
    if lowest.item() >= 0 and highest.item() < num_classes:
        return not 0 <= ignore_index < num_classes
    bad = ((target < 0) | (target >= num_classes)) & (target != ignore_index)
    if bool(bad.any()):
        place = tuple(bad.nonzero()[0].tolist())
        at = f" at index {place}" if place else ""
        raise ValueError(
            f"target: expected class indices from 0 to {num_classes - 1} (or ignore_index "
            f"{ignore_index}), got {int(target[place])}{at}"
        )
    return False


class Outputs:
    """Logits with the classes on axis 1, and the log-softmax that several losses may share.

    >>> outputs = Outputs(torch.zeros(1, 2))
    >>> outputs.log_probabilities.exp()
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, logits: Tensor, *, counted: bool = False):
        self.raw = logits
        self.counted = counted
        """Whether every target of the batch is known to be a class and not ignored."""
        self._logits: Tensor | None = None
        self._log_probabilities: Tensor | None = None

    @property
    def logits(self) -> Tensor:
        """The logits in working precision, float32 at least, converted once."""
        if self._logits is None:
            self._logits = working_precision(self.raw)
        return self._logits

    @property
    def log_probabilities(self) -> Tensor:
        """Logarithm of the softmax of the logits, computed once."""
        if self._log_probabilities is None:
            self._log_probabilities = torch.log_softmax(self.logits, dim=1)
        return self._log_probabilities

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.raw.shape[1]


Reduction: TypeAlias = Literal["none", "mean", "sum"]


def fit_weight(class_weight: Tensor, values: Tensor) -> Tensor:
    """The class weights in the values' dtype, and on `meta` if these are.

    A loss that is moved to `meta` keeps its weights elsewhere, since `meta` has no memory.
    """
    device = "meta" if values.device.type == "meta" else class_weight.device
    return class_weight.to(device, values.dtype)


def weigh_classes(target: Tensor, class_weight: Tensor) -> Tensor:
    """Class probabilities `(N, C, ...)` times the class weights."""
    shape = (1, -1) + (1,) * (target.ndim - 2)
    return target * fit_weight(class_weight, target).view(shape)


def replace_ignored(target: Tensor, ignore_index: int) -> Tensor:
    """Point ignored labels at class 0, so that a gather is safe; `Loss.reduce` drops them."""
    return torch.where(target == ignore_index, 0, target)
