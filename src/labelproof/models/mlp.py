"""The multi-layer perceptron, for inputs of any shape, and its fast path on a CPU.

A layer of 50 x 100 on 200 rows is some 80 microseconds of arithmetic, and torch's overhead is a
multiple of that: on ARM a product with a transposed weight goes to a library that prepares each
call anew, and every operation is a node that is made, kept and visited. `chain` copies the weight
into the order that torch's own product takes, and one node holds all layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from labelproof.models.network import Network, global_state_kept, initialize, sizes
from labelproof.ranges import flag, whole


class MLP(Network):
    """Linear layers with ReLU between them, over flattened inputs.

    Args:
        num_classes: Number of classes.
        input_shape: Shape of one input: `(F,)` for a table's rows, `(3, 32, 32)` for images.
        hidden: Width of each hidden layer; none at all makes a linear classifier.
        batch_norm: Whether to put batch normalisation before each ReLU.
        generator: Source of the initial weights.

    Example:
        >>> network = MLP(3, (20,), hidden=(64, 16))
        >>> network(torch.zeros(5, 20)).shape, network.features(torch.zeros(5, 20)).shape
        (torch.Size([5, 3]), torch.Size([5, 16]))
    """

    def __init__(
        self,
        num_classes: int,
        input_shape: Sequence[int],
        *,
        hidden: Sequence[int] = (256, 256),
        batch_norm: bool = False,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        num_classes = whole("num_classes", num_classes, 1)
        batch_norm = flag("batch_norm", batch_norm)
        if isinstance(hidden, str) or not isinstance(hidden, Sequence):
            raise TypeError(f"hidden: expected widths such as (256, 256), got {hidden!r}")
        widths = [math.prod(sizes("input_shape", input_shape))]
        widths += [whole("hidden", width, 1) for width in hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        with global_state_kept():
            for inputs, outputs in pairwise(widths):
                layers.append(nn.Linear(inputs, outputs))
                if batch_norm:
                    layers.append(nn.BatchNorm1d(outputs))
                layers.append(nn.ReLU())
            self.body = nn.Sequential(*layers)
            self.head = nn.Linear(widths[-1], num_classes)
        initialize(self, generator)

    @property
    def layers(self) -> list[nn.Module]:
        """All of them, in order."""
        return [*self.body, self.head]

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, `(N, num_classes)`."""
        # Hooks on the layers must run.
        layers = None if listened_to(self.body) else linear_layers(self.layers)
        if layers is not None and fits(inputs, layers):
            return chain(inputs.flatten(1), layers)
        return super().forward(inputs)


_SMALL = 1 << 16
"""Numbers in a weight. Of larger ones the copy costs more than it saves."""


# Torch's own, which has no name in Python; looked up once.
_through_relu = torch.ops.aten.threshold_backward.default


def linear_layers(layers: Iterable[nn.Module]) -> list[nn.Linear] | None:
    """The linear ones among layers that are a flattening, then linear layers with ReLU between.

    `None` where they are anything else, or where one of them has a hook.

    >>> linear_layers([nn.Flatten(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)])
    [Linear(in_features=3, out_features=4, bias=True), Linear(in_features=4, out_features=2, bias=True)]
    >>> linear_layers([nn.Flatten(), nn.Linear(3, 4), nn.Linear(4, 2)]) is None
    True
    """  # noqa: E501 (what is printed is one line)
    found: list[nn.Linear] = []
    expected: type[nn.Module] = nn.Flatten
    for layer in layers:
        # A subclass may compute something else, as torch's parametrizations do.
        if type(layer) is not expected or listened_to(layer):
            return None
        if isinstance(layer, nn.Linear):
            found.append(layer)
        expected = nn.ReLU if expected is nn.Linear else nn.Linear
    return found if expected is nn.ReLU else None


def fits(inputs: Tensor, layers: Sequence[nn.Linear]) -> bool:
    """Whether `chain` serves: small layers, a batch on the CPU in the weights' type, eager mode."""
    return (
        not torch.compiler.is_compiling()
        and type(inputs) is Tensor
        and inputs.ndim > 1
        and inputs.device.type == "cpu"
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
        and not torch.is_autocast_enabled("cpu")
        and all(_is_small(layer, inputs.dtype) for layer in layers)
        # Inside torch.func the tensor is a wrapper, and a dual tensor carries a derivative along.
        and not torch._C._functorch.is_functorch_wrapped_tensor(inputs)  # pyright: ignore
        and torch.autograd.forward_ad.unpack_dual(inputs).tangent is None
    )


def chain(inputs: Tensor, layers: Sequence[nn.Linear]) -> Tensor:
    """What the layers make of the inputs, with ReLU between them.

    Args:
        inputs: `(N, D)`, on the CPU.
        layers: At least one.

    Example:
        >>> layer = nn.Linear(3, 2)
        >>> torch.allclose(chain(torch.ones(1, 3), [layer]), layer(torch.ones(1, 3)))
        True
    """
    parameters = [each for layer in layers for each in (layer.weight, layer.bias)]
    if torch.is_grad_enabled():
        return _Chain.apply(inputs, *parameters)  # pyright: ignore
    return pass_on(inputs, parameters)[-1]


def pass_on(inputs: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """What each layer is given, and the last one's output.

    Args:
        inputs: `(N, D)`.
        parameters: Weight and bias of each layer.
    """
    states = [inputs]
    for place in range(0, len(parameters), 2):
        weight, bias = parameters[place], parameters[place + 1]
        if place:
            states[-1].relu_()
        states.append(torch.addmm(bias, states[-1], weight.t().contiguous()))
    return states


def pass_back(
    states: Sequence[Tensor],
    parameters: Sequence[Tensor],
    gradient: Tensor,
    into: Sequence[Tensor | None],
) -> Tensor:
    """Write the gradients of the parameters, from that of the output; all in memory that is there.

    Args:
        states: What `pass_on` gave, without the output.
        parameters: As they were given there.
        gradient: Of the output.
        into: Where those of the parameters go; `None` for one that is not wanted.

    Returns:
        The gradient of the first layer's output.
    """
    for layer in reversed(range(len(states))):
        weight, bias = into[2 * layer], into[2 * layer + 1]
        if weight is not None:
            torch.mm(gradient.t(), states[layer], out=weight)
        if bias is not None:
            torch.sum(gradient, dim=0, out=bias)
        if layer:
            gradient = gradient.mm(parameters[2 * layer])
            # The state is after the ReLU, and not above zero where that let nothing through.
            gradient = _through_relu(gradient, states[layer], 0)
    return gradient


def _is_small(layer: nn.Linear, dtype: torch.dtype) -> bool:
    weight = layer.weight
    return (
        layer.bias is not None
        and type(weight) is nn.Parameter
        and weight.numel() <= _SMALL
        and weight.dtype == dtype
        and weight.device.type == "cpu"
    )


def listened_to(layer: nn.Module) -> bool:
    """Whether a hook waits for the layer to be called."""
    return bool(
        layer._forward_hooks
        or layer._forward_pre_hooks
        or layer._backward_hooks
        or layer._backward_pre_hooks
    )


class _Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, *parameters):
        *states, outputs = pass_on(inputs, parameters)
        ctx.save_for_backward(*parameters, *states)
        return outputs

    @staticmethod
    def backward(ctx, *gradients):
        layers = len(ctx.saved_tensors) // 3
        parameters, states = ctx.saved_tensors[: 2 * layers], ctx.saved_tensors[2 * layers :]
        wanted = ctx.needs_input_grad
        if torch.is_grad_enabled():  # a gradient of the gradient is asked for
            return _differentiable(states[0], parameters, gradients[0], wanted)
        found = [
            torch.empty_like(each) if needed else None
            for each, needed in zip(parameters, wanted[1:], strict=True)
        ]
        first = pass_back(states, parameters, gradients[0], found)
        return (first.mm(parameters[0]) if wanted[0] else None, *found)


def _differentiable(inputs, parameters, gradient, wanted):
    with torch.enable_grad():
        outputs = inputs
        for place in range(0, len(parameters), 2):
            outputs = outputs.relu() if place else outputs
            outputs = nn.functional.linear(outputs, parameters[place], parameters[place + 1])
        given = [inputs, *parameters]
        asked = [each for each, needed in zip(given, wanted, strict=True) if needed]
        found = iter(torch.autograd.grad(outputs, asked, gradient, create_graph=True))
    return tuple(next(found) if needed else None for needed in wanted)
