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
    """Registers its last layer first, and hands it its input by name."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(5, 2)
        self.first = nn.Linear(8, 5)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.classifier(input=self.first(inputs))


class FeatureMaps(nn.Module):
    """As torchvision's VGG: `features` is a module, and not the penultimate layer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(8, 6)
        self.head = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))


def test_of_a_sequential_it_is_what_the_last_linear_layer_sees() -> None:
    network = sequential()
    assert torch.equal(penultimate(network, rows()), network[:2](rows()))


def test_the_layer_called_last_counts_and_not_the_one_registered_last() -> None:
    network = HeadFirst()
    assert torch.equal(penultimate(network, rows()), network.first(rows()))


def test_a_module_called_features_is_not_taken_for_the_method() -> None:
    network = FeatureMaps()
    expected = network.head[:2](network.features(rows()))
    assert torch.equal(penultimate(network, rows()), expected)


def test_a_compiled_network_gives_them_too() -> None:
    network = sequential()
    compiled = torch.compile(network, backend="eager")
    compiled(rows())
    assert isinstance(compiled, nn.Module)
    assert torch.equal(penultimate(compiled, rows()), network[:2](rows()))


def test_a_network_without_a_linear_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="expected Identity to call"):
        penultimate(nn.Identity(), rows())


def test_a_linear_layer_that_does_not_make_the_outputs_is_refused() -> None:
    network = nn.Sequential(nn.Linear(8, 6), nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 2, 6))
    with pytest.raises(ValueError, match=r"which gives 6 numbers, got \(3, 2, 1\)"):
        penultimate(network, rows())
