"""Plain convolutional networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FourLayerCNN", "initialize"]


class FourLayerCNN(nn.Module):
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
        image_shape: tuple[int, int, int],
        *,
        width: int = 32,
        hidden: int = 128,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        channels, height, image_width = image_shape
        self.body = nn.Sequential(
            *_convolution(channels, width),
            nn.MaxPool2d(2),
            *_convolution(width, 2 * width),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * (height // 4) * (image_width // 4), hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, num_classes)
        initialize(self, generator)

    def features(self, images: Tensor) -> Tensor:
        """What the last layer sees, `(N, hidden)`."""
        return self.body(images)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, `(N, num_classes)`."""
        return self.head(self.features(images))


def initialize(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """The paper's initialisation: Kaiming for convolutions, Xavier for linear layers."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu", generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def _convolution(channels: int, filters: int) -> tuple[nn.Module, nn.Module, nn.Module]:
    convolution = nn.Conv2d(channels, filters, kernel_size=3, padding=1)
    return convolution, nn.BatchNorm2d(filters), nn.ReLU()
