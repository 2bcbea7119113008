from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from labelproof.models import ResNet
from labelproof.models.resnet import Stem


@pytest.fixture(autouse=True)
def without_drawing_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full networks are only counted here, and drawing 25 million numbers takes time."""
    monkeypatch.setattr("labelproof.models.resnet.initialize", lambda network, generator: None)


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(("depth", "known"), [(18, 11_689_512), (34, 21_797_672), (50, 25_557_032)])
def test_it_has_as_many_parameters_as_everybodys_on_imagenet(depth: int, known: int) -> None:
    with torch.device("meta"):
        network = ResNet(1000, (3, 224, 224), depth=depth, stem="imagenet")
    assert count(network) == known


@pytest.mark.parametrize(("stem", "size"), [("cifar", 4), ("imagenet", 1)])
def test_a_stem_decides_the_size_of_the_last_maps(stem: Stem, size: int) -> None:
    network = ResNet(10, (3, 32, 32), depth=18, stem=stem, width=2).eval()
    maps = network.body[:-1](torch.zeros(1, 3, 32, 32))
    assert maps.shape == (1, 16, size, size)


def test_any_size_of_image_will_do() -> None:
    for stem in ("cifar", "imagenet"):
        network = ResNet(10, (1, 1, 7), depth=18, stem=stem, width=1).eval()
        assert network(torch.zeros(2, 1, 1, 7)).shape == (2, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 20}, "depth: expected one of 18, 34, 50, got 20"),
        ({"depth": 18, "stem": "mnist"}, "stem: expected 'cifar' or 'imagenet', got 'mnist'"),
        ({"depth": 18, "width": 0}, "width: expected a whole number of at least 1, got 0"),
        ({"depth": 18, "num_classes": 0}, "num_classes: expected a whole number"),
        ({"depth": 18, "image_shape": (64,)}, r"image_shape: expected \(channels, height, width\)"),
    ],
)
def test_it_says_what_it_takes(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ResNet(**{"num_classes": 10, "image_shape": (3, 32, 32), **options})
