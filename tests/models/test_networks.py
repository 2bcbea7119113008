"""What holds for every network that has a name."""

import pytest
import torch
from torch import Tensor, nn

from labelproof.models import NETWORKS, Network, make_network, penultimate

SMALL = {name: f"{name}(width=4)" for name in NETWORKS} | {
    "cnn4": "cnn4(width=4,hidden=8)",
    "cnn8": "cnn8(width=4,hidden=8)",
    "mlp": "mlp(hidden=8)",
    "mlp with batch norm": "mlp(hidden=8,batch_norm=true)",
    "linear": "mlp(depth=0)",
}
SHAPE = (3, 16, 16)

every_network = pytest.mark.parametrize("text", SMALL.values(), ids=SMALL.keys())


def make(text: str, seed: int = 0) -> Network:
    generator = torch.Generator().manual_seed(seed)
    network = make_network(text, num_classes=5, input_shape=SHAPE, generator=generator)
    assert isinstance(network, Network)
    return network


def batch(size: int = 4) -> Tensor:
    return torch.rand(size, *SHAPE, generator=torch.Generator().manual_seed(1))


@every_network
def test_the_head_reads_the_features(text: str) -> None:
    network = make(text).eval()
    features = network.features(batch())
    assert features.shape == (4, network.head.in_features)
    torch.testing.assert_close(network.head(features), network(batch()))
    assert torch.equal(penultimate(network, batch()), features)
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
