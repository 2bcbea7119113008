"""Residual networks with 18, 34 or 50 layers, for small images and for large ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from labelproof.models.network import Network, global_state_kept, image_sizes, initialize
from labelproof.ranges import choose, whole

Stem: TypeAlias = Literal["cifar", "imagenet"]


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, or a bottleneck of 1x1, 3x3 and 1x1, with a shortcut.

    Args:
        channels: Number of input channels.
        filters: Filters of each convolution; the last is the number of output channels.
        stride: Stride of the first 3x3 convolution and of the shortcut.

    Example:
        >>> ResidualBlock(8, (16, 16), stride=2)(torch.zeros(1, 8, 4, 4)).shape
        torch.Size([1, 16, 2, 2])
        >>> ResidualBlock(8, (4, 4, 16), stride=2)(torch.zeros(1, 8, 4, 4)).shape
        torch.Size([1, 16, 2, 2])
    """

    def __init__(self, channels: int, filters: Sequence[int], *, stride: int = 1):
        super().__init__()
        bottleneck = len(filters) == 3
        layers: list[nn.Module] = []
        for index, (inputs, outputs) in enumerate(pairwise([channels, *filters])):
            size = 1 if bottleneck and index != 1 else 3
            step = stride if index == bottleneck else 1
            layers += [*_convolution(inputs, outputs, size=size, stride=step), nn.ReLU()]
        self.branch = nn.Sequential(*layers[:-1])
        same = stride == 1 and channels == filters[-1]
        shortcut = _convolution(channels, filters[-1], size=1, stride=stride)
        self.shortcut = nn.Identity() if same else nn.Sequential(*shortcut)
        self.activation = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """The sum of both branches, after a ReLU."""
        return self.activation(self.branch(inputs) + self.shortcut(inputs))


_STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
"""Number of blocks in each stage, by the number of layers; those of 50 are bottlenecks."""


class ResNet(Network):
    """A residual network; the paper's for CIFAR-100 (34 layers) and WebVision (50 layers).

    Args:
        num_classes: Number of classes.
        image_shape: Channels, height and width; of any height and width.
        depth: Number of layers: 18, 34 or 50.
        stem: `"cifar"` starts with a 3x3 convolution at full resolution, for images of about 32
            pixels; `"imagenet"` with a 7x7 convolution and a max-pool, which together divide height
            and width by four, for images of about 224.
        width: Filters of the first stage; each of the three later stages doubles it.
        generator: Source of the initial weights.

    Example:
        >>> network = ResNet(100, (3, 32, 32), depth=18, width=4)
        >>> network(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 100])
        >>> ResNet(1000, (3, 224, 224), depth=50, stem="imagenet", width=4).head.in_features
        128
    """

    def __init__(
        self,
        num_classes: int,
        image_shape: Sequence[int],
        *,
        depth: int,
        stem: Stem = "cifar",
        width: int = 64,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        num_classes, width = whole("num_classes", num_classes, 1), whole("width", width, 1)
        if depth not in _STAGES:
            raise ValueError(f"depth: expected one of 18, 34, 50, got {depth!r}")
        choose("stem", stem, ("cifar", "imagenet"))
        channels, _, _ = image_sizes("image_shape", image_shape)
        with global_state_kept():
            layers = [*_stem(channels, width, stem)]
            channels = width
            for stage, repeat in enumerate(_STAGES[depth]):
                filters = width * 2**stage
                sizes = (filters, filters, 4 * filters) if depth == 50 else (filters, filters)
                for index in range(repeat):
                    stride = 2 if stage > 0 and index == 0 else 1
                    layers.append(ResidualBlock(channels, sizes, stride=stride))
                    channels = sizes[-1]
            self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.head = nn.Linear(channels, num_classes)
        initialize(self, generator)


def _stem(channels: int, width: int, stem: Stem) -> list[nn.Module]:
    if stem == "cifar":
        return [*_convolution(channels, width, size=3), nn.ReLU()]
    pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
    return [*_convolution(channels, width, size=7, stride=2), nn.ReLU(), pool]


def _convolution(channels: int, filters: int, *, size: int, stride: int = 1) -> list[nn.Module]:
    # No bias: the batch normalisation behind it would subtract it again.
    convolution = nn.Conv2d(channels, filters, size, stride=stride, padding=size // 2, bias=False)
    return [convolution, nn.BatchNorm2d(filters)]
