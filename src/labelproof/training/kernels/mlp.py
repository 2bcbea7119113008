"""A small network's step on the CPU, with its gradient written down instead of traced.

There torch's graph costs more than the arithmetic: for two layers of a hundred units, making it and
walking back through it is half of a step. Where the network is linear layers with ReLU between and
the loss sees one label's probability, both gradients are a few lines: a step is 1.5 to 2 times as
fast (`benchmarks/rows.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labelproof.losses import SparseRegularized
from labelproof.losses.gradient import MeanAndGradient, has_gradient, mean_and_gradient
from labelproof.losses.penalty import SPARSE
from labelproof.models.network import MLP
from labelproof.training.algorithms import Algorithm, Supervised
from labelproof.training.batches import Feed, Fetched
from labelproof.training.metrics import Tally, count_fitted
from labelproof.training.optimizer import Optimizer

_SMALL = 1 << 16
"""Numbers in a weight. Of larger ones the copy costs more than it saves."""

_LOG_SPARSE = math.log(SPARSE)

# Torch's own, which has no name in Python; looked up once.
_through_relu = torch.ops.aten.threshold_backward.default


def make_direct(
    network: nn.Module, algorithm: Algorithm, optimizer: Optimizer, feed: Feed, tally: Tally
) -> Direct | None:
    """The direct way for a run in float32 on the CPU; `None` where its gradient has to be traced.

    Args:
        network: What learns.
        algorithm: What is minimised.
        optimizer: Of the network's parameters.
        feed: Gives the batches.
        tally: Takes note of the steps.
    """
    if type(network) is not MLP or type(algorithm) is not Supervised:
        return None
    layers = [each for each in network.modules() if isinstance(each, nn.Linear)]
    normalised = any(isinstance(each, nn.BatchNorm1d) for each in network.modules())
    if normalised or any(each.weight.numel() > _SMALL for each in layers):
        return None
    given, loss = feed.labels.given, algorithm.loss
    # The loss may be told to pass over some labels, which here would count.
    counted = bool((given >= 0).all()) and not bool((given == loss.ignore_index).any())
    if given.device.type != "cpu" or not has_gradient(loss) or not counted:
        return None
    return Direct(network, layers, algorithm, optimizer, tally)


class Direct:
    """The gradient of a batch, from its examples.

    Args:
        network: What learns.
        layers: The linear ones of it.
        algorithm: What is minimised.
        optimizer: Of the network's parameters.
        tally: Takes note of the steps.
    """

    def __init__(
        self,
        network: MLP,
        layers: list[nn.Linear],
        algorithm: Supervised,
        optimizer: Optimizer,
        tally: Tally,
    ):
        self.loss = algorithm.loss
        self.tally = tally
        self.gradient = torch.zeros_like(optimizer.flat.values)
        self._modules = list(network.modules())
        self._parameters = [each for layer in layers for each in (layer.weight, layer.bias)]
        views = optimizer.flat.like(self.gradient)
        places = {id(each): view for each, view in zip(optimizer.parameters, views, strict=True)}
        self._into = [places.get(id(each)) for each in self._parameters]

    @property
    def ready(self) -> bool:
        """Whether none of the network's modules has hooks."""
        return not any(_listened_to(module) for module in self._modules)

    def __call__(self, fetched: Fetched) -> Tensor:
        """The gradient of a batch, laid as the optimiser lays the parameters; under no_grad."""
        *states, logits = _pass_on(fetched.inputs.flatten(1), self._parameters)
        found = mean_and_gradient(self.loss, logits, fetched.target, weight=fetched.weight)
        self._note(found, fetched)
        _pass_back(states, self._parameters, found.gradient, self._into)
        return self.gradient

    def _note(self, found: MeanAndGradient, fetched: Fetched) -> None:
        """As `Tally.add`, with numbers of Python: an operation costs more than its arithmetic."""
        size, loss = len(fetched.target), float(found.mean)
        highest, predicted = found.log_probabilities.max(dim=1)
        parts = [float((highest > _LOG_SPARSE).sum())]
        if found.penalty is not None and fetched.weight is None:
            assert isinstance(self.loss, SparseRegularized)  # noqa: S101
            penalty = float(found.penalty.sum())
            parts = [size * loss - self.loss.weight * penalty, penalty, *parts]
        if fetched.clean is fetched.target:  # no label is known to be wrong
            counts = [int((fetched.target == predicted).sum()), 0, 0, size, 0]
        else:
            counts = count_fitted(predicted, fetched).tolist()
        tally = self.tally
        tally.sums += torch.tensor([size * loss, *parts, *counts], dtype=tally.sums.dtype)
        if not math.isfinite(loss) and int(tally.diverged) < 0:
            tally.diverged.copy_(tally.count)
        tally.count += 1


def _pass_on(inputs: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """What each layer is given, and the last one's output; weight and bias of each layer come."""
    # A copy in the order of torch's own product: on ARM a transposed weight goes to a library that
    # prepares each call anew.
    states = [inputs]
    for place in range(0, len(parameters), 2):
        weight, bias = parameters[place], parameters[place + 1]
        if place:
            states[-1].relu_()
        states.append(torch.addmm(bias, states[-1], weight.t().contiguous()))
    return states


def _pass_back(
    states: Sequence[Tensor],
    parameters: Sequence[Tensor],
    gradient: Tensor,
    into: Sequence[Tensor | None],
) -> None:
    """Write the gradients of the parameters into memory that is there, where it is wanted."""
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


def _listened_to(layer: nn.Module) -> bool:
    """Whether a hook waits for the layer to be called."""
    return bool(
        layer._forward_hooks
        or layer._forward_pre_hooks
        or layer._backward_hooks
        or layer._backward_pre_hooks
    )
