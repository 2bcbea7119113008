"""Networks: a body that computes features and a linear head.

The paper's plain convolutional ones for MNIST and CIFAR-10, and the multi-layer perceptron.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise

import torch
from torch import Tensor, nn

from labelproof.ranges import whole


class Network(nn.Module):
    """A classifier in two parts, which subclasses build.

    Attributes:
        body: From inputs to features, `(N, D)`.
        head: The last linear layer, from features to logits.

    Example:
        >>> import torch
        >>> network = Network()
        >>> network.body, network.head = nn.Sequential(nn.Flatten()), nn.Linear(12, 10)
        >>> network.features(torch.zeros(2, 3, 4)).shape, network(torch.zeros(2, 3, 4)).shape
        (torch.Size([2, 12]), torch.Size([2, 10]))
    """

    body: nn.Sequential
    head: nn.Linear

    def features(self, inputs: Tensor) -> Tensor:
        """The penultimate features, `(N, D)`."""
        return self.body(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, `(N, num_classes)`."""
        return self.head(self.features(inputs))


def initialize(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """The paper's initialisation: Kaiming for convolutions, Xavier for linear layers.

    Weights are uniform, biases zero; everything else is left as it is.

    Args:
        network: Changed in place.
        generator: Source of the weights; by default torch's global one.

    Example:
        >>> layer = torch.nn.Linear(3, 3)
        >>> initialize(layer, torch.Generator().manual_seed(0))
        >>> bool(layer.weight.abs().max() <= 1), layer.bias.tolist()
        (True, [0.0, 0.0, 0.0])
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu", generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def global_state_kept() -> AbstractContextManager[None]:
    """A context that restores the state of torch's global CPU generator.

    Layers of torch draw their initial weights from the global generator. Those weights are
    overwritten, and the draws should not change the random numbers of the caller.

    Example:
        >>> before = torch.get_rng_state()
        >>> with global_state_kept():
        ...     layer = torch.nn.Linear(3, 3)
        >>> torch.equal(before, torch.get_rng_state())
        True
    """
    # skip_init would save the draws, but its first use loads torch's meta kernels: half a second.
    return torch.random.fork_rng(devices=[])


def sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape or widths as ints of at least 1, or raise.

    >>> sizes("input_shape", [64])
    (64,)
    """
    return tuple(whole(name, size, 1) for size in shape)


def image_sizes(name: str, shape: Sequence[int], *, smallest: int = 1) -> tuple[int, int, int]:
    """Return channels, height and width, or raise.

    Args:
        name: The argument's name, for the message.
        shape: The argument.
        smallest: The smallest height and width allowed.

    >>> image_sizes("image_shape", (3, 32, 32), smallest=8)
    (3, 32, 32)
    >>> image_sizes("image_shape", (64,))
    Traceback (most recent call last):
        ...
    ValueError: image_shape: expected (channels, height, width) of at least 1 pixel a side, got
    (64,); inputs of any other shape are for an MLP
    """
    given = sizes(name, shape)
    if len(given) != 3 or min(given[1:]) < smallest:
        pixels = "1 pixel" if smallest == 1 else f"{smallest} pixels"
        raise ValueError(
            f"{name}: expected (channels, height, width) of at least {pixels} a side, got {given}; "
            "inputs of any other shape are for an MLP"
        )
    return given[0], given[1], given[2]


def penultimate(network: nn.Module, inputs: Tensor) -> Tensor:
    """The penultimate features of any network.

    A network of this package has a method for them. Any other is run on the inputs, and the
    features are the input of the linear layer that it calls last. Gradients flow. The network stays
    in its mode: call `network.eval()` first if batch normalisation and dropout should be off.

    Args:
        network: Any classifier whose logits come from an `nn.Linear`.
        inputs: A batch of the network's inputs.

    Returns:
        Features, `(N, D)`.

    Raises:
        ValueError: The network called no linear layer.

    Example:
        >>> network = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3))
        >>> penultimate(network, torch.zeros(2, 8)).shape
        torch.Size([2, 5])
    """
    if isinstance(network, Network):
        return network.features(inputs)
    captured: list[Tensor] = []

    def capture(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        captured[:] = arguments[:1]

    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    hooks = [layer.register_forward_pre_hook(capture) for layer in layers]
    try:
        network(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if not captured:
        raise ValueError(f"network: expected {type(network).__name__} to call an nn.Linear")
    return captured[0]


class MLP(Network):
    """Linear layers with ReLU between them, over flattened inputs.

    Args:
        num_classes: Number of classes.
        input_shape: Shape of one input: `(F,)` for a table's rows, `(3, 32, 32)` for images.
        hidden: Width of each hidden layer; empty for a linear classifier.
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
        inputs = math.prod(sizes("input_shape", input_shape))
        widths = [inputs, *sizes("hidden", hidden)]
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


class _PlainCNN(Network):
    def __init__(
        self,
        num_classes: int,
        image_shape: Sequence[int],
        stages: Sequence[Sequence[int]],
        hidden: int,
        generator: torch.Generator | None,
    ):
        """Stages of convolutions, with these filters and a pooling each, then two linear layers."""
        super().__init__()
        num_classes, hidden = whole("num_classes", num_classes, 1), whole("hidden", hidden, 1)
        shrink = 2 ** len(stages)
        channels, rows, columns = image_sizes("image_shape", image_shape, smallest=shrink)
        layers: list[nn.Module] = []
        with global_state_kept():
            for stage in stages:
                for filters in stage:
                    # No bias: the batch norm would subtract it again, and one that starts at zero
                    # stays there.
                    layers.append(nn.Conv2d(channels, filters, 3, padding=1, bias=False))
                    layers += [nn.BatchNorm2d(filters), nn.ReLU()]
                    channels = filters
                layers.append(nn.MaxPool2d(2))
            inputs = channels * (rows // shrink) * (columns // shrink)
            layers += [nn.Flatten(), nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
            self.body = nn.Sequential(*layers)
            self.head = nn.Linear(hidden, num_classes)
        initialize(self, generator)


class FourLayerCNN(_PlainCNN):
    """The paper's network for MNIST: two convolutions with pooling, two linear layers.

    Args:
        num_classes: Number of classes.
        image_shape: Channels, height and width; height and width are quartered by the pooling.
        width: Filters of the first convolution; the second has twice as many.
        hidden: Width of the penultimate layer.
        generator: Source of the initial weights.

    Example:
        >>> network = FourLayerCNN(10, (1, 8, 8), generator=torch.Generator().manual_seed(0))
        >>> network(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int,
        image_shape: Sequence[int],
        *,
        width: int = 32,
        hidden: int = 128,
        generator: torch.Generator | None = None,
    ):
        width = whole("width", width, 1)
        super().__init__(num_classes, image_shape, [(width,), (2 * width,)], hidden, generator)


class EightLayerCNN(_PlainCNN):
    """The paper's network for CIFAR-10: three pairs of convolutions, two linear layers.

    Args:
        num_classes: Number of classes.
        image_shape: Channels, height and width; the pooling divides height and width by eight.
        width: Filters in the first pair; the second pair has twice as many, the third about three
            times, so that 64 gives the paper's 64, 128 and 196.
        hidden: Width of the penultimate layer.
        generator: Source of the initial weights.

    Example:
        >>> network = EightLayerCNN(10, (3, 8, 8), width=4, hidden=16)
        >>> network(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int,
        image_shape: Sequence[int],
        *,
        width: int = 64,
        hidden: int = 256,
        generator: torch.Generator | None = None,
    ):
        width = whole("width", width, 1)
        pairs = [(filters, filters) for filters in (width, 2 * width, width * 196 // 64)]
        super().__init__(num_classes, image_shape, pairs, hidden, generator)
