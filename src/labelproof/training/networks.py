"""The networks of a run, made ready for its device."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from labelproof.models.network import Network
from labelproof.models.spec import make_network
from labelproof.training.configuration import Configuration
from labelproof.training.convolution import default_convolution, use_convolution
from labelproof.training.description import Description
from labelproof.training.execution import Execution
from labelproof.training.fusible import make_fusible
from labelproof.training.randomness import generator_for

__all__ = ["draw_nothing", "drop_units", "make_networks"]


def make_networks(
    configuration: Configuration, description: Description, execution: Execution, count: int
) -> list[nn.Module]:
    """Networks with initial weights of their own, on the device, in the form that is fastest there.

    Args:
        configuration: Its network, seed and precision are read.
        description: Shapes of inputs and outputs.
        execution: The device, and which convolutions to use.
        count: How many; they differ in their weights.
    """
    device = execution.device
    convolution = execution.convolution or default_convolution(device, configuration.precision)
    networks = []
    for index in range(count):
        network = make_network(
            configuration.network,
            num_classes=len(description.class_names),
            input_shape=description.input_shape,
            generator=generator_for(configuration.seed, f"network {index}"),
        )
        network = network.to(device)
        network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        _forget_counts(network)
        if execution.compile and device.type == "cuda":
            make_fusible(network)
        networks.append(use_convolution(network, convolution).train())
    return networks


def draw_nothing(networks: Iterable[nn.Module]) -> bool:
    """Whether networks are known to draw no random numbers: this package's own do not."""
    return all(isinstance(network, Network) for network in networks)


def drop_units(networks: Iterable[nn.Module]) -> bool:
    """Whether networks have dropout, whose draws all recorded steps would share."""
    return any(
        isinstance(module, _DropoutNd) for network in networks for module in network.modules()
    )


def _forget_counts(network: nn.Module) -> None:
    """Let batch norms not count their batches: a kernel each, for a number that no one reads."""
    for module in network.modules():
        if isinstance(module, _BatchNorm) and module.momentum is not None:
            module.num_batches_tracked = None
