from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from labelproof.models import penultimate


def rows(size: int = 3) -> Tensor:
    return torch.rand(size, 8, generator=torch.Generator().manual_seed(0))


def sequential() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2), nn.LogSoftmax(dim=1))


class HeadFirst(nn.Module):
    """Registers its last layer first."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(5, 2)
        self.first = nn.Linear(8, 5)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.classifier(self.first(inputs))


class FeatureMaps(nn.Module):
    """As torchvision's VGG: `features` is a module, and not the penultimate layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(8, 6)
        self.head = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))


def test_it_is_what_the_linear_layer_called_last_sees() -> None:
    plain, first, maps = sequential(), HeadFirst(), FeatureMaps()
    for network, expected in (
        (plain, plain[:2](rows())),
        (first, first.first(rows())),
        (maps, maps.head[:2](maps.features(rows()))),
    ):
        assert torch.equal(penultimate(network, rows()), expected)
    with pytest.raises(ValueError, match=r"network: .*Identity"):
        penultimate(nn.Identity(), rows())
