r"""Sparse regularization: sharpen the output, penalise its l_p norm, and any loss becomes robust.

A loss is robust to label noise when the network's outputs are one-hot (`labelproof.theory` has the
proof's pieces). Training cannot enforce that, but can encourage it:

$$ L(u, y) + \lambda_t \|u\|_p^p, \qquad u = \mathrm{softmax}(\bar z / \tau), \quad
   \bar z = z \text{ or } z / \|z\|_2. $$
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import Self

from labelproof.losses.algebra import foreign_settings, require_module
from labelproof.losses.base import Loss, PointwiseLoss, follow
from labelproof.losses.batch import Outputs, admit_logits, is_probabilities, replace_ignored
from labelproof.losses.gradient import LabelForm, Sharpening
from labelproof.losses.numerics import check_clamp
from labelproof.losses.penalty import (
    check_vector,
    lp_norm,
    permutation_penalty,
    sharpen,
    sparse_rate,
)
from labelproof.ranges import flag, within
from labelproof.schedules import Schedule, as_schedule, exponential

kernels: Any
try:
    from labelproof.losses import kernels
except ImportError:  # Triton comes with CUDA builds of torch only
    kernels = None

SMALLEST_TEMPERATURE = 1e-12
"""The gradient through the norm has its inverse squared, which could overflow float32."""


class SparseParts(NamedTuple):
    """The parts of a sparse-regularized loss, from one forward pass."""

    total: Tensor
    """The loss: base + weight * penalty."""
    base: Tensor
    """The base loss on the sharpened output."""
    penalty: Tensor
    """The l_p norm of the sharpened output, before its weight."""
    sparse_rate: Tensor
    """Share of outputs whose largest probability is above 0.99."""


class SparseRegularized(Loss):
    r"""Any loss made robust: $L(u, y) + \lambda_t \|u\|_p^p$ on the sharpened output $u$.

    The defaults are the paper's for CIFAR-10. The prediction is the argmax of the logits; the
    sharpened output is only for training.

    Args:
        base: A loss of this package, or any module over (logits, target), torch's own included.
        temperature: $\tau$, a number or a schedule from epoch to value.
        p: Exponent of the norm, in (0, 1].
        weight: $\lambda_t$, a number or a schedule; the paper's is `exponential(1.2, growth=1.03)`.
            Start below $1 / p$, or the penalty outweighs learning from the first step.
        normalize: Divide the logits by their l2 norm before the temperature.
        clamp: Floor of $u$ in the penalty, 1e-7 in the reference code; off by default.
        vector: The output is pushed towards a permutation of it. One-hot by default; a number
            spreads that share evenly over the other classes, a tensor `(C)` is any fixed vector.

    Example:
        >>> from labelproof import CrossEntropy, exponential
        >>> loss = SparseRegularized(
        ...     CrossEntropy(), temperature=0.5, p=0.1, weight=exponential(1.2, growth=1.03)
        ... )
        >>> loss.set_epoch(10)
        >>> round(loss.weight, 4)
        1.6127
        >>> loss(torch.tensor([[3.0, 4.0]]), torch.tensor([1]))
        tensor(3.5170)

    Reference:
        Zhou et al., "Learning with Noisy Labels via Sparse Regularization", ICCV 2021.
    """

    def __init__(
        self,
        base: nn.Module,
        temperature: float | Schedule = 0.5,
        p: float = 0.1,
        weight: float | Schedule = exponential(1.2, growth=1.03),  # noqa: B008 (frozen)
        normalize: bool = True,
        *,
        clamp: float | None = None,
        vector: Tensor | float | None = None,
    ):
        require_module("base", base)
        super().__init__(**(base.settings if isinstance(base, Loss) else foreign_settings(base)))
        self.base = base
        self.p = within("p", p, 0, 1, open_low=True)
        self.normalize = flag("normalize", normalize)
        self.clamp = check_clamp(clamp)
        self.temperature_schedule = as_schedule("temperature", temperature)
        self.weight_schedule = as_schedule("weight", weight)
        self.smoothing, self.vector = check_vector(vector)
        self.one_hot = self.vector is None and self.smoothing == 0
        """Whether the output is pushed towards one-hot, not towards another vector."""
        # Tensors, so that a new epoch neither recompiles nor re-records a CUDA graph; float64, so
        # that the schedule is exact in a float64 loss. Not buffers, like class weights.
        valueless = torch.get_default_device().type == "meta"
        exact: Any = {"dtype": torch.float64, "device": "cpu" if valueless else None}
        with torch.inference_mode(False):  # tensors made in that mode cannot be modified later
            self._weight, self._temperature = torch.zeros((), **exact), torch.ones((), **exact)
        self.epoch = 0.0
        self.set_epoch(0)

    @property
    def weight(self) -> float:
        r"""The weight $\lambda_t$ at the current epoch."""
        return self._numbers[0]

    @property
    def temperature(self) -> float:
        r"""The temperature $\tau$ at the current epoch."""
        return self._numbers[1]

    def set_epoch(self, epoch: float) -> None:
        """Move the weight and the temperature to `epoch`, counted from 0; fractions are allowed."""
        epoch = within("epoch", epoch, 0)
        weight = within(f"weight at epoch {epoch:g}", self.weight_schedule(epoch), 0)
        name, temperature = f"temperature at epoch {epoch:g}", self.temperature_schedule(epoch)
        temperature = within(name, temperature, SMALLEST_TEMPERATURE)
        self.epoch = epoch
        # Also as numbers: evaluating schedules at every step would slow down small batches.
        self._numbers = (weight, temperature)
        self._weight.fill_(weight)
        self._temperature.fill_(temperature)
        super().set_epoch(epoch)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Loss of a batch, with the same arguments as every loss."""
        if isinstance(self.base, Loss):
            return super().forward(input, target)
        base, penalty, _ = self._evaluate_foreign(input, target)
        return self._total(base, penalty)

    def parts(self, logits: Tensor, target: Tensor) -> SparseParts:
        """The loss with its two parts and the sparse rate, from one pass.

        Example:
            >>> from labelproof import CrossEntropy
            >>> loss = SparseRegularized(CrossEntropy(), weight=2)
            >>> parts = loss.parts(torch.tensor([[3.0, 4.0]]), torch.tensor([1]))
            >>> bool(parts.total == parts.base + 2 * parts.penalty)
            True
        """
        evaluate = self._evaluate_own if isinstance(self.base, Loss) else self._evaluate_foreign
        base, penalty, sharpened = evaluate(logits, target)
        if logits.ndim == 1:
            target = target.unsqueeze(0)
        rate = sparse_rate(sharpened.log_probabilities)
        if _fits(target, sharpened):
            rate = self.reduce(rate, target, reduction="mean", unweighted=True)
        return SparseParts(self._total(base, penalty), base, penalty, rate.mean())

    def label_form(self) -> LabelForm | None:
        """The base and its sharpening, if the base depends on its label alone."""
        form = self.base.label_form() if isinstance(self.base, PointwiseLoss) else None
        if form is None or type(self) is not SparseRegularized or not self.one_hot:
            return None
        weight, temperature = self._numbers
        how = Sharpening(temperature, self.p, self.normalize, self.clamp, weight)
        return LabelForm(form.base, how)

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given labels, the base's by its own rule."""
        logits = outputs.raw
        if kernels is not None and kernels.fits(logits, target) and (form := self.label_form()):
            labels = target if outputs.counted else replace_ignored(target, self.ignore_index)
            label, norm = kernels.label_and_norm(
                logits,
                labels,
                self._temperature.to(logits.device, torch.float32),
                p=self.p,
                normalize=self.normalize,
                clamp=self.clamp,
            )
            return self._total(form.base.each_pointwise(label), norm)
        sharpened = self.sharpen(outputs)
        penalty = self.penalty(sharpened)
        if is_probabilities(target):
            penalty = penalty * target.sum(dim=1)  # 1, or the expected class weight
        return self._total(self._own_base().values(sharpened, target), penalty)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Value for every possible label, `(N, C, ...)`."""
        sharpened = self.sharpen(outputs)
        base = self._own_base().label_values(sharpened)
        return self._total(base, self.penalty(sharpened).unsqueeze(1))

    def extra_repr(self) -> str:
        """Hyperparameters, for printing."""
        return (
            f"temperature={self.temperature_schedule}, p={self.p:g}, "
            f"weight={self.weight_schedule}, normalize={self.normalize}, clamp={self.clamp}, "
            f"vector={self.smoothing or None if self.vector is None else self.vector}"
        )

    def get_extra_state(self) -> Tensor:
        """The epoch, from which weight and temperature follow."""
        return torch.tensor(self.epoch, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Move to the epoch that was saved."""
        self.set_epoch(float(state))

    def weigh_penalty(self, penalty: Tensor) -> Tensor:
        r"""A penalty times $\lambda_t$."""
        return _scalar(self._weight, penalty) * penalty

    def _total(self, base: Tensor, penalty: Tensor) -> Tensor:
        return base + self.weigh_penalty(penalty)

    def _evaluate_own(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Outputs]:
        single = isinstance(logits, Tensor) and logits.ndim == 1
        logits, target, _ = self.admit(logits, target)
        sharpened = self.sharpen(Outputs(logits))
        # Not by the base's own settings, which differ once either has been changed.
        value = self._own_base().values(sharpened, self.weigh(target))
        value = self.reduce(value, target, weighed=True)
        penalty = self.reduce(self.penalty(sharpened), target)
        if single and self.reduction == "none":
            value, penalty = value.squeeze(0), penalty.squeeze(0)
        return value, penalty, sharpened

    def _evaluate_foreign(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Outputs]:
        # A foreign loss validates the target itself and gets the caller's shapes.
        admit_logits(logits)
        sharp = self.sharpen(Outputs(logits)).logits
        value = self.base(sharp, target)
        if logits.ndim == 1:
            sharp, target = sharp.unsqueeze(0), target.unsqueeze(0)
        sharpened = Outputs(sharp)
        penalty = self.penalty(sharpened)
        if value.shape == sharp.shape:  # a value per class, as binary cross entropy gives
            return value, penalty.unsqueeze(1), sharpened
        each = value.shape == penalty.shape
        if _fits(target, sharpened):
            reduction = "none" if each else self.reduction
            penalty = self.reduce(penalty, target, reduction=reduction)
        return value, penalty if each or penalty.ndim == 0 else penalty.mean(), sharpened

    def sharpen(self, outputs: Outputs) -> Outputs:
        """The sharpened output, on which base and penalty are computed."""
        temperature = _scalar(self._temperature, outputs.logits)
        sharp = sharpen(outputs.logits, temperature=temperature, normalize=self.normalize)
        return Outputs(sharp, counted=outputs.counted)

    def penalty(self, sharpened: Outputs) -> Tensor:
        """The penalty of each example's sharpened output, before its weight."""
        if self.one_hot:
            return lp_norm(sharpened.log_probabilities, p=self.p, clamp=self.clamp)
        vector = self.smoothing if self.vector is None else self.vector
        return permutation_penalty(sharpened.log_probabilities.exp(), p=self.p, vector=vector)

    def _own_base(self) -> Loss:
        if not isinstance(self.base, Loss):
            raise TypeError(
                f"{type(self.base).__name__} gives one number per batch; wrap it with "
                "labelproof.losses.as_loss(module) before the regularised loss is combined further"
            )
        return self.base

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move with the module to its device, but keep the scalars' precision.

        `.half()` and `.bfloat16()` would cut the schedule to three digits, and Apple's MPS has no
        float64, so the values are moved as float32, widened where possible, and filled again.
        """
        module = super()._apply(fn, recurse)
        self.vector = None if self.vector is None else follow(self.vector, fn)
        with torch.inference_mode(False):
            weight, temperature = fn(self._weight.float()), fn(self._temperature.float())
            widest = torch.float32 if weight.device.type == "mps" else torch.float64
            self._weight, self._temperature = weight.to(widest), temperature.to(widest)
        if self._weight.device.type != "meta":
            self._weight.fill_(self.weight)
            self._temperature.fill_(self.temperature)
        return module


def _scalar(value: Tensor, like: Tensor) -> Tensor:
    """A copy in the loss's precision.

    A copy, since the epoch may move between forward and backward; in the loss's precision, since a
    float64 scalar times a float32 scalar would be a float64 loss.
    """
    return value.to(like.dtype, copy=True)


def _fits(target: Tensor, outputs: Outputs) -> bool:
    """Whether a target has one label per example; a foreign loss may accept others."""
    shape = outputs.logits.shape
    return target.shape == (shape if is_probabilities(target) else (shape[0], *shape[2:]))
