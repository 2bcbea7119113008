"""Plain convolutional networks: the paper's for MNIST and for CIFAR-10."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from labelproof.models.network import Network, global_state_kept, image_sizes, initialize
from labelproof.ranges import whole


class FourLayerCNN(Network):
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
        super().__init__()
        num_classes, hidden = whole("num_classes", num_classes, 1), whole("hidden", hidden, 1)
        width = whole("width", width, 1)
        channels, rows, columns = image_sizes("image_shape", image_shape, smallest=4)
        with global_state_kept():
            self.body = nn.Sequential(
                *_convolution(channels, width),
                nn.MaxPool2d(2),
                *_convolution(width, 2 * width),
                nn.MaxPool2d(2),
                *_penultimate(2 * width * (rows // 4) * (columns // 4), hidden),
            )
            self.head = nn.Linear(hidden, num_classes)
        initialize(self, generator)


class EightLayerCNN(Network):
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
        super().__init__()
        num_classes, hidden = whole("num_classes", num_classes, 1), whole("hidden", hidden, 1)
        width = whole("width", width, 1)
        channels, rows, columns = image_sizes("image_shape", image_shape, smallest=8)
        last = width * 196 // 64
        with global_state_kept():
            self.body = nn.Sequential(
                *_pair(channels, width),
                *_pair(width, 2 * width),
                *_pair(2 * width, last),
                *_penultimate(last * (rows // 8) * (columns // 8), hidden),
            )
            self.head = nn.Linear(hidden, num_classes)
        initialize(self, generator)


def _pair(channels: int, filters: int) -> list[nn.Module]:
    first, second = _convolution(channels, filters), _convolution(filters, filters)
    return [*first, *second, nn.MaxPool2d(2)]


def _convolution(channels: int, filters: int) -> list[nn.Module]:
    # No bias: the batch norm would subtract it again, and one that starts at zero stays there.
    convolution = nn.Conv2d(channels, filters, kernel_size=3, padding=1, bias=False)
    return [convolution, nn.BatchNorm2d(filters), nn.ReLU()]


def _penultimate(inputs: int, hidden: int) -> list[nn.Module]:
    return [nn.Flatten(), nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
