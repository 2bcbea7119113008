r"""SGD and AdamW over all parameters of a network at once.

The parameters of a network are views of one flat tensor. An update is then a handful of large
operations instead of a few for each of a hundred tensors, which would take much of a small
network's step. All of it can be compiled and recorded, because everything that changes, the
learning rate included, is a tensor.

The rules are torch's, to the last rounding: gradients are clipped by their norm, weight decay is
added to them (SGD) or applied to the weights (AdamW), and the moments start at zero. An l1 penalty
adds a multiple of each parameter's sign to the gradient, by default after clipping.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from labelproof.training.configuration import Configuration

_ALIGNED = 4
"""Floats in 16 bytes: compiled code copies inputs that are not aligned to it."""


def sgd(
    parameters: Tensor,
    gradient: Tensor,
    momentum_buffer: Tensor,
    *,
    rate: Tensor,
    momentum: float,
    nesterov: bool,
    weight_decay: float,
) -> tuple[Tensor, ...]:
    """The parameters and the momentum buffer after a step of SGD."""
    gradient = gradient + weight_decay * parameters
    moved = momentum * momentum_buffer + gradient
    direction = gradient + momentum * moved if nesterov else moved
    return parameters - rate * direction, moved


def adamw(
    parameters: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    step: Tensor,
    *,
    rate: Tensor,
    momentum: float,
    weight_decay: float,
    second: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Tensor, ...]:
    """The parameters, both moments and the number of steps after a step of AdamW."""
    step = step + 1
    mean = momentum * mean + (1 - momentum) * gradient
    square = second * square + (1 - second) * gradient * gradient
    root = (square / _bias_correction(second, step)).sqrt() + epsilon
    decayed = parameters * (1 - rate * weight_decay)
    return decayed - rate / _bias_correction(momentum, step) * mean / root, mean, square, step


class FlatParameters:
    """A network's trainable parameters, as views of one flat tensor."""

    def __init__(self, network: nn.Module):
        trained = [each for each in network.parameters() if each.requires_grad]
        kinds = {str(each.dtype) for each in trained}
        if kinds != {"torch.float32"}:
            raise ValueError(
                "network: expected float32 parameters that can be trained, got "
                f"{', '.join(sorted(kinds)) or 'none'}"
            )
        # Those whose size would misalign the next come last, so that few gaps are needed.
        self.parameters = sorted(trained, key=lambda each: each.numel() % _ALIGNED != 0)
        sizes = [-(-each.numel() // _ALIGNED) * _ALIGNED for each in self.parameters]
        self.values = torch.zeros(sum(sizes), device=trained[0].device)
        self._nhwc = [
            each.ndim == 4 and each.is_contiguous(memory_format=torch.channels_last)
            for each in self.parameters
        ]
        self._starts = [0, *itertools.accumulate(sizes)]
        for parameter, view in zip(self.parameters, self.like(self.values), strict=True):
            view.copy_(parameter.detach())
            parameter.data = view
        self._gaps = [
            self.values.new_zeros(size - parameter.numel())
            for parameter, size in zip(self.parameters, sizes, strict=True)
        ]

    def like(self, values: Tensor) -> list[Tensor]:
        """Views of a tensor of the size of `values`, one for each parameter, in its shape."""
        views = []
        for parameter, start, last in zip(self.parameters, self._starts, self._nhwc, strict=False):
            piece = values[start : start + parameter.numel()]
            if last:
                out, channels, height, width = parameter.shape
                view = piece.view(out, height, width, channels).permute(0, 3, 1, 2)
            else:
                view = piece.view(parameter.shape)
            views.append(view)
        return views

    def gather(self, gradients: Sequence[Tensor]) -> Tensor:
        """Gradients, in the order of `parameters`, as one tensor with the layout of `values`."""
        pieces = []
        for gradient, gap, last in zip(gradients, self._gaps, self._nhwc, strict=True):
            # In the memory order of the parameter, which the gradient may not have.
            pieces.append((gradient.permute(0, 2, 3, 1) if last else gradient).reshape(-1))
            if len(gap):
                pieces.append(gap)
        return torch.cat(pieces)


class Optimizer:
    """SGD or AdamW over the parameters of a network.

    Args:
        configuration: Rule, momentum, weight decay, l1 penalty and the norm to clip at.
        network: Its parameters become views of one tensor.
        scaled: Whether the loss is scaled, so that fp16 gradients do not underflow; a step whose
            gradients overflow is skipped and the scale halved.
    """

    _FIRST_SCALE = 2.0**12
    _GROWS_AFTER = 2000

    def __init__(self, configuration: Configuration, network: nn.Module, *, scaled: bool = False):
        self.flat = FlatParameters(network)
        self.parameters = self.flat.parameters
        """The parameters, in the order in which `update` takes their gradients."""
        values = self.flat.values
        self.rate = torch.tensor(configuration.learning_rate, device=values.device)
        self.clip_norm = configuration.clip_norm
        self.l1 = self._make_l1(configuration) if configuration.l1 else None
        self.l1_before_clipping = configuration.l1_before_clipping
        self.scale = torch.tensor(self._FIRST_SCALE, device=values.device) if scaled else None
        self.steady = torch.zeros((), device=values.device)
        self._settings = {
            name: getattr(configuration, name) for name in ("momentum", "weight_decay")
        }
        self._rule: Callable[..., tuple[Tensor, ...]]
        if configuration.optimizer == "adamw":
            self._rule = adamw
            self.moments = {name: torch.zeros_like(values) for name in ("mean", "square")}
            self.moments["step"] = torch.zeros((), device=values.device)
        else:
            self._rule = sgd
            self._settings["nesterov"] = configuration.nesterov
            self.moments = {"momentum": torch.zeros_like(values)}
        scaling = {} if self.scale is None else {"scale": self.scale, "steady": self.steady}
        self.state = self.moments | scaling
        """The tensors that a step changes in place, besides the parameters."""
        # Torch's fused kernel, for steps that are not compiled.
        self._fused = self._rule is adamw and values.device.type == "cpu"

    def _make_l1(self, configuration: Configuration) -> Tensor:
        """The weight of the l1 penalty: a scalar, or one for each element of `values`."""
        # A tensor, as the learning rate is, so that runs with other weights share compiled code.
        values = self.flat.values
        if configuration.l1_on == "all":  # gaps between parameters are 0, whose sign is 0
            return torch.tensor(configuration.l1, device=values.device)
        each = torch.zeros_like(values)
        for parameter, view in zip(self.parameters, self.flat.like(each), strict=True):
            view.fill_(configuration.l1 if parameter.ndim > 1 else 0.0)
        return each

    def set_rate(self, rate: float) -> None:
        """Set the learning rate."""
        self.rate.fill_(rate)

    @torch.no_grad()
    def update(self, gradients: Sequence[Tensor]) -> None:
        """Take one step with the gradients of `parameters`."""
        self.move(self.flat.gather(gradients))

    def move(self, gradient: Tensor) -> None:
        """Take one step with a flat gradient; call it under `no_grad`."""
        values, moments = self.flat.values, list(self.moments.values())
        finite = None
        if self.scale is not None:
            gradient = gradient / self.scale
        if self.l1 is not None and self.l1_before_clipping:
            gradient = gradient + self.l1 * values.sign()
        if self.clip_norm or self.scale is not None:
            norm = torch.linalg.vector_norm(gradient)
            finite = torch.isfinite(norm) if self.scale is not None else None
            if self.clip_norm:
                gradient = gradient * (self.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        if self.l1 is not None and not self.l1_before_clipping:
            gradient = gradient + self.l1 * values.sign()
        if self._fused and not torch.compiler.is_compiling():
            if finite is None or bool(finite):  # free on the CPU
                # Torch's fused kernel: the rule in place, in one pass over memory.
                mean, square, step = moments
                step += 1
                torch._fused_adamw_(  # pyright: ignore[reportPrivateImportUsage]
                    *([values], [gradient], [mean], [square], [], [step]),
                    lr=self.rate,
                    beta1=self._settings["momentum"],
                    beta2=0.999,
                    weight_decay=self._settings["weight_decay"],
                    eps=1e-8,
                    amsgrad=False,
                    maximize=False,
                )
        else:
            updated = self._rule(values, gradient, *moments, rate=self.rate, **self._settings)
            for old, new in zip([values, *moments], updated, strict=True):
                old.copy_(new if finite is None else torch.where(finite, new, old))
        if self.scale is not None and finite is not None:
            steady = torch.where(finite, self.steady + 1, 0)
            grown = torch.where(steady >= self._GROWS_AFTER, 2 * self.scale, self.scale)
            self.scale.copy_(torch.where(finite, grown, self.scale / 2))
            self.steady.copy_(torch.where(steady >= self._GROWS_AFTER, 0, steady))


def _bias_correction(decay: float, step: Tensor) -> Tensor:
    """`1 - decay**step`, which in float32 would lose five digits at the first steps of 0.999."""
    return -torch.expm1(step * (math.log(decay) if decay else -math.inf))
