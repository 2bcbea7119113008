"""A small network's step on the CPU, with its gradient written down instead of traced.

There torch's graph costs more than the arithmetic: for two layers of a hundred units, making it and
walking back through it is half of a step. Where the network is linear layers with ReLU between and
the loss sees one label's probability, both gradients are a few lines.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labelproof.losses.gradient import has_gradient, mean_and_gradient
from labelproof.models.mlp import MLP, fits, linear_layers, listened_to, pass_back, pass_on
from labelproof.training.algorithms import Algorithm, Supervised
from labelproof.training.algorithms.base import Seen
from labelproof.training.batches import Feed, Fetched
from labelproof.training.metrics import Backlog
from labelproof.training.optimizer import Optimizer


def make_direct(
    network: nn.Module, algorithm: Algorithm, optimizer: Optimizer, feed: Feed, backlog: Backlog
) -> Direct | None:
    """The direct way for a run in float32 on the CPU; `None` where its gradient has to be traced.

    Args:
        network: What learns.
        algorithm: What is minimised.
        optimizer: Of the network's parameters.
        feed: Gives the batches.
        backlog: Takes note of the steps.
    """
    if type(network) is not MLP or type(algorithm) is not Supervised:
        return None
    layers = linear_layers(network.layers)
    if layers is None or not fits(torch.zeros(1, layers[0].in_features), layers):
        return None
    given, loss = feed.labels.given, algorithm.loss
    # The loss may be told to pass over some labels, which here would count.
    counted = bool((given >= 0).all()) and not bool((given == loss.ignore_index).any())
    if not has_gradient(loss) or optimizer.scale is not None or not counted:
        return None
    return Direct(network, layers, algorithm, optimizer, backlog)


class Direct:
    """The gradient of a batch, from its examples.

    Args:
        network: What learns.
        layers: The linear ones of it.
        algorithm: What is minimised.
        optimizer: Of the network's parameters.
        backlog: Takes note of the steps.
    """

    def __init__(
        self,
        network: MLP,
        layers: list[nn.Linear],
        algorithm: Supervised,
        optimizer: Optimizer,
        backlog: Backlog,
    ):
        self.loss = algorithm.loss
        self.backlog = backlog
        self.gradient = torch.zeros_like(optimizer.flat.values)
        self._modules = list(network.modules())
        self._parameters = [each for layer in layers for each in (layer.weight, layer.bias)]
        views = optimizer.flat.like(self.gradient)
        places = {id(each): view for each, view in zip(optimizer.parameters, views, strict=True)}
        self._into = [places.get(id(each)) for each in self._parameters]

    @property
    def ready(self) -> bool:
        """Whether none of the network's modules has hooks."""
        return not any(listened_to(module) for module in self._modules)

    def __call__(self, fetched: Fetched) -> Tensor:
        """The gradient of a batch, laid as the optimiser lays the parameters; under no_grad."""
        *states, logits = pass_on(fetched.inputs.flatten(1), self._parameters)
        found = mean_and_gradient(self.loss, logits, fetched.target, weight=fetched.weight)
        self.backlog.add(found.mean, logits, fetched, Seen(found.log_probabilities, found.penalty))
        pass_back(states, self._parameters, found.gradient, self._into)
        return self.gradient
