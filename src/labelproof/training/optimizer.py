r"""SGD and AdamW over all parameters of a network at once.

The parameters of a network are laid side by side in one tensor, of which each is a view. An update
is then a handful of large operations instead of a few for each of a hundred tensors, which is what
the step of a small network spends much of its time on; and all of it can be compiled and recorded,
since what moves, the learning rate included, is in memory.

The rules are torch's, to the last rounding: gradients are clipped by their norm, weight decay is
added to them (SGD) or applied to the weights (AdamW), and the first step starts from zeros. An l1
penalty adds the sign of each parameter to the gradient, after clipping unless told otherwise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from labelproof.training.configuration import Configuration

_ALIGNED = 4
"""Numbers in 16 bytes: compiled code copies an input that does not start at a multiple of it."""


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
    """The parameters and the momentum after a step of SGD."""
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
    root = (square / _complement(second, step)).sqrt() + epsilon
    decayed = parameters * (1 - rate * weight_decay)
    return decayed - rate / _complement(momentum, step) * mean / root, mean, square, step


class FlatParameters:
    """A network's trainable parameters, laid side by side in one tensor."""

    def __init__(self, network: nn.Module):
        trained = [each for each in network.parameters() if each.requires_grad]
        kinds = {str(each.dtype) for each in trained}
        if kinds != {"torch.float32"}:
            raise ValueError(
                "network: expected float32 parameters that can be trained, got "
                f"{', '.join(sorted(kinds)) or 'none'}"
            )
        # Those that leave the next one out of place come last, so that few gaps are needed.
        self.parameters = sorted(trained, key=lambda each: each.numel() % _ALIGNED != 0)
        sizes = [-(-each.numel() // _ALIGNED) * _ALIGNED for each in self.parameters]
        self.values = torch.zeros(sum(sizes), device=trained[0].device)
        self._last = [
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
        """Views of a tensor as long as `values`, one in the place and shape of each parameter."""
        views = []
        for parameter, start, last in zip(self.parameters, self._starts, self._last, strict=False):
            piece = values[start : start + parameter.numel()]
            if last:
                out, channels, height, width = parameter.shape
                view = piece.view(out, height, width, channels).permute(0, 3, 1, 2)
            else:
                view = piece.view(parameter.shape)
            views.append(view)
        return views

    def gather(self, gradients: Sequence[Tensor]) -> Tensor:
        """Gradients in the order of `parameters`, side by side as the values are."""
        pieces = []
        for gradient, gap, last in zip(gradients, self._gaps, self._last, strict=True):
            # In the order of the parameter's memory, whatever the gradient's is.
            pieces.append((gradient.permute(0, 2, 3, 1) if last else gradient).reshape(-1))
            if len(gap):
                pieces.append(gap)
        return torch.cat(pieces)


class Optimizer:
    """Moves a network along its gradients.

    Args:
        configuration: Kind, momentum, weight decay, l1 penalty and the norm to clip at.
        network: Its parameters become views of one tensor.
        scaled: Whether gradients come times a scale that keeps those of fp16 from vanishing; a step
            whose gradients overflow is left out and the scale halved.
    """

    _FIRST_SCALE = 2.0**12
    _GROWS_AFTER = 2000

    def __init__(self, configuration: Configuration, network: nn.Module, *, scaled: bool = False):
        self.flat = FlatParameters(network)
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
        # Compiled, the rule is one kernel as it stands.
        self._fused = self._rule is adamw and values.device.type == "cpu"

    def _make_l1(self, configuration: Configuration) -> Tensor:
        """The penalty's weight: one number, or one for each parameter where they differ."""
        # In memory as the learning rate is, so that runs with other weights share compiled code.
        values = self.flat.values
        if configuration.l1_on == "all":  # gaps between parameters are 0, whose sign is 0
            return torch.tensor(configuration.l1, device=values.device)
        each = torch.zeros_like(values)
        for parameter, view in zip(self.parameters, self.flat.like(each), strict=True):
            view.fill_(configuration.l1 if parameter.ndim > 1 else 0.0)
        return each

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What gradients are wanted of, in this order."""
        return self.flat.parameters

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors that a step changes, besides the parameters."""
        scaling = {} if self.scale is None else {"scale": self.scale, "steady": self.steady}
        return self.moments | scaling

    def set_rate(self, rate: float) -> None:
        """Move the learning rate."""
        self.rate.fill_(rate)

    @torch.no_grad()
    def update(self, gradients: Sequence[Tensor]) -> None:
        """Take one step along the gradients of `parameters`."""
        self.move(self.flat.gather(gradients))

    def move(self, gradient: Tensor) -> None:
        """Take one step along a gradient that lies as the parameters do, where none is traced."""
        values, moments = self.flat.values, list(self.moments.values())
        sound = None
        if self.scale is not None:
            gradient = gradient / self.scale
        if self.l1 is not None and self.l1_before_clipping:
            gradient = gradient + self.l1 * values.sign()
        if self.clip_norm or self.scale is not None:
            norm = torch.linalg.vector_norm(gradient)
            sound = torch.isfinite(norm) if self.scale is not None else None
            if self.clip_norm:
                gradient = gradient * (self.clip_norm / (norm + 1e-6)).clamp(max=1.0)
        if self.l1 is not None and not self.l1_before_clipping:
            gradient = gradient + self.l1 * values.sign()
        if self._fused and not torch.compiler.is_compiling():
            if sound is None or bool(sound):  # on the CPU a look costs nothing
                # The rule in place, in one pass over memory; torch's own kernel.
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
            for mine, new in zip([values, *moments], updated, strict=True):
                mine.copy_(new if sound is None else torch.where(sound, new, mine))
        if self.scale is not None and sound is not None:
            steady = torch.where(sound, self.steady + 1, 0)
            grown = torch.where(steady >= self._GROWS_AFTER, 2 * self.scale, self.scale)
            self.scale.copy_(torch.where(sound, grown, self.scale / 2))
            self.steady.copy_(torch.where(steady >= self._GROWS_AFTER, 0, steady))


def _complement(decay: float, step: Tensor) -> Tensor:
    """One minus a power, which in float32 would lose five digits at the first steps of 0.999."""
    return -torch.expm1(step * (math.log(decay) if decay else -math.inf))
