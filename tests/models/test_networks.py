"""What holds for every network that has a name, and each as the paper has it."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelproof import models

SMALL = {name: f"{name}(width=4)" for name in models.NETWORKS} | {
    "cnn4": "cnn4(width=4,hidden=8)",
    "cnn8": "cnn8(width=4,hidden=8)",
    "mlp": "mlp(hidden=8)",
    "mlp with batch norm": "mlp(hidden=8,batch_norm=true)",
    "linear": "mlp(depth=0)",
}
SHAPE = (3, 16, 16)

every_network = pytest.mark.parametrize("text", SMALL.values(), ids=SMALL.keys())


def seeded(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def make(text: str, seed: int = 0) -> models.Network:
    how = {"input_shape": SHAPE, "generator": seeded(seed)}
    network = models.make_network(text, num_classes=5, **how)
    assert isinstance(network, models.Network)
    return network


def batch(size: int = 4) -> Tensor:
    return torch.rand(size, *SHAPE, generator=seeded(1))


@every_network
def test_the_head_reads_the_features(text: str) -> None:
    network = make(text).eval()
    features = network.features(batch())
    assert features.shape == (4, network.head.in_features)
    torch.testing.assert_close(network.head(features), network(batch()))
    assert torch.equal(models.penultimate(network, batch()), features)
    assert network(batch()).shape == (4, 5)


@every_network
def test_the_generator_alone_decides_the_weights_which_start_as_the_paper_says(text: str) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = make(text)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    again, other = make(text).state_dict(), make(text, seed=1).state_dict()
    for name, value in first.state_dict().items():
        assert torch.equal(value, again[name])
        # Biases and batch norms start at constants; every drawn weight differs by seed.
        assert value.ndim < 2 or not torch.equal(value, other[name])
    for module in first.modules():
        if isinstance(module, nn.Conv2d):
            limit = (6 / module.weight[0].numel()) ** 0.5
        elif isinstance(module, nn.Linear):
            limit = (6 / (module.in_features + module.out_features)) ** 0.5
        else:
            continue
        assert 0.9 * limit < module.weight.abs().max() <= limit
        assert module.bias is None or not module.bias.any()


@pytest.mark.parametrize("name", ["cnn4", "resnet18", "mlp with batch norm"])
def test_it_compiles_as_one_graph(name: str) -> None:
    torch.compiler.reset()  # one forward may be compiled eight times, for whatever networks
    network = make(SMALL[name])
    compiled = torch.compile(network, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch()), network(batch()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@every_network
def test_a_cuda_graph_replays_it(text: str) -> None:
    network = make(text).cuda().eval()
    images = batch().cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = network(images)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    held = torch.zeros_like(images)
    with torch.cuda.graph(graph):
        outputs = network(held)
    held.copy_(images)
    graph.replay()
    torch.testing.assert_close(outputs, expected)


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_the_plain_networks_are_the_papers_and_a_seed_means_what_it_always_meant() -> None:
    four = models.FourLayerCNN(10, (1, 28, 28), generator=seeded())
    shapes = [tuple(value.shape) for value in four.parameters() if value.ndim > 1]
    assert shapes == [(32, 1, 3, 3), (64, 32, 3, 3), (128, 64 * 7 * 7), (10, 128)]
    expected = [0.12814660370349884, -0.14534038305282593, -0.1913057118654251]
    torch.testing.assert_close(four.head.weight[0, :3], torch.tensor(expected))
    eight = models.EightLayerCNN(10, (3, 32, 32), generator=seeded())
    filters = [value.shape[0] for value in eight.parameters() if value.ndim > 1]
    assert filters == [64, 64, 128, 128, 196, 196, 256, 10]
    assert count(eight) == 1_639_018


def test_residual_networks_are_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelproof.models.resnet.initialize", lambda network, generator: None)
    for depth, known in ((18, 11_689_512), (34, 21_797_672), (50, 25_557_032)):
        with torch.device("meta"):
            assert count(models.ResNet(1000, (3, 224, 224), depth=depth, stem="imagenet")) == known
    for stem, size in (("cifar", 4), ("imagenet", 1)):
        network = models.ResNet(10, (3, 32, 32), depth=18, stem=stem, width=2).eval()
        assert network.body[:-2](torch.zeros(1, 3, 32, 32)).shape == (1, 16, size, size)
        flat = models.ResNet(10, (1, 1, 7), depth=18, stem=stem, width=1).eval()
        assert flat(torch.zeros(2, 1, 1, 7)).shape == (2, 10)


def test_a_perceptron_takes_rows_and_images_alike_and_may_be_linear() -> None:
    first, second = (models.MLP(3, shape, generator=seeded()) for shape in ((12,), (3, 2, 2)))
    rows = torch.rand(4, 12, generator=seeded(1))
    assert torch.equal(first(rows), second(rows.reshape(4, 3, 2, 2)))
    for asked in (False, True):
        modules = models.MLP(3, (4,), batch_norm=asked).modules()
        assert sum(isinstance(module, nn.BatchNorm1d) for module in modules) == 2 * asked
    linear = models.MLP(3, (12,), hidden=())
    torch.testing.assert_close(linear(rows), rows @ linear.head.weight.T + linear.head.bias)
    assert torch.equal(linear.features(rows), rows)


def test_what_cannot_be_built_is_refused_by_its_name() -> None:
    resnet = {"num_classes": 10, "image_shape": (3, 32, 32), "depth": 18}
    perceptron = {"num_classes": 3, "input_shape": (4,)}
    sizes = {"width": [0], "num_classes": [0], "image_shape": [(64,)]}
    refused: list[tuple[Any, dict[str, Any], dict[str, list[Any]]]] = [
        (models.ResNet, resnet, {"depth": [20], "stem": ["mnist"], **sizes}),
        (models.MLP, perceptron, {"hidden": [(8, 0)], "input_shape": [(0,)]}),
    ]
    for make, usual, cases in refused:
        for name, values in cases.items():
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
        assert torch.equal(models.penultimate(network, rows), expected)
    with pytest.raises(ValueError, match=r"network: .*Identity"):
        models.penultimate(nn.Identity(), rows)
