"""Each network as the paper has it, and what it refuses."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelproof.models import MLP, EightLayerCNN, FourLayerCNN, ResNet, penultimate


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_the_plain_networks_are_the_papers_and_a_seed_means_what_it_always_meant() -> None:
    four = FourLayerCNN(10, (1, 28, 28), generator=seeded())
    shapes = [tuple(value.shape) for value in four.parameters() if value.ndim > 1]
    assert shapes == [(32, 1, 3, 3), (64, 32, 3, 3), (128, 64 * 7 * 7), (10, 128)]
    expected = [0.12814660370349884, -0.14534038305282593, -0.1913057118654251]
    torch.testing.assert_close(four.head.weight[0, :3], torch.tensor(expected))
    eight = EightLayerCNN(10, (3, 32, 32), generator=seeded())
    filters = [value.shape[0] for value in eight.parameters() if value.ndim > 1]
    assert filters == [64, 64, 128, 128, 196, 196, 256, 10]
    assert count(eight) == 1_639_018


def test_residual_networks_are_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelproof.models.resnet.initialize", lambda network, generator: None)
    for depth, known in ((18, 11_689_512), (34, 21_797_672), (50, 25_557_032)):
        with torch.device("meta"):
            assert count(ResNet(1000, (3, 224, 224), depth=depth, stem="imagenet")) == known
    for stem, size in (("cifar", 4), ("imagenet", 1)):
        network = ResNet(10, (3, 32, 32), depth=18, stem=stem, width=2).eval()
        assert network.body[:-1](torch.zeros(1, 3, 32, 32)).shape == (1, 16, size, size)
        flat = ResNet(10, (1, 1, 7), depth=18, stem=stem, width=1).eval()
        assert flat(torch.zeros(2, 1, 1, 7)).shape == (2, 10)


def test_a_perceptron_takes_rows_and_images_alike_and_may_be_linear() -> None:
    first, second = (MLP(3, shape, generator=seeded()) for shape in ((12,), (3, 2, 2)))
    rows = torch.rand(4, 12, generator=seeded(1))
    assert torch.equal(first(rows), second(rows.reshape(4, 3, 2, 2)))
    for asked in (False, True):
        modules = MLP(3, (4,), batch_norm=asked).modules()
        assert sum(isinstance(module, nn.BatchNorm1d) for module in modules) == 2 * asked
    linear = MLP(3, (12,), hidden=())
    torch.testing.assert_close(linear(rows), rows @ linear.head.weight.T + linear.head.bias)
    assert torch.equal(linear.features(rows), rows)


def test_what_cannot_be_built_is_refused_by_its_name() -> None:
    resnet = {"num_classes": 10, "image_shape": (3, 32, 32), "depth": 18}
    perceptron = {"num_classes": 3, "input_shape": (4,)}
    cases: list[tuple[Any, dict[str, Any], str, list[Any]]] = [
        (ResNet, resnet, "depth", [20]),
        (ResNet, resnet, "stem", ["mnist"]),
        (ResNet, resnet, "width", [0]),
        (ResNet, resnet, "num_classes", [0]),
        (ResNet, resnet, "image_shape", [(64,)]),
        (MLP, perceptron, "hidden", [256, (8, 0)]),
        (MLP, perceptron, "batch_norm", [1]),
        (MLP, perceptron, "input_shape", [64, (), (0,)]),
    ]
    for make, usual, name, values in cases:
        for value in values:
            with pytest.raises((TypeError, ValueError), match=f"{name}: expected"):
                make(**(usual | {name: value}))


class HeadFirst(nn.Module):
    """Registers its last layer first, and calls another part `features`, as torchvision's VGG."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 2)
        self.features = nn.Linear(8, 5)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))


def test_penultimate_features_are_what_the_linear_layer_called_last_sees() -> None:
    rows = torch.rand(3, 8, generator=seeded())
    plain = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2), nn.LogSoftmax(dim=1))
    first = HeadFirst()
    for network, expected in ((plain, plain[:2](rows)), (first, first.features(rows))):
        assert torch.equal(penultimate(network, rows), expected)
    with pytest.raises(ValueError, match=r"network: .*Identity"):
        penultimate(nn.Identity(), rows)
