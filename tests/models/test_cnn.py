import torch

from labelproof.models import FourLayerCNN


def network(seed: int = 0) -> FourLayerCNN:
    return FourLayerCNN(10, (1, 28, 28), generator=torch.Generator().manual_seed(seed))


def test_it_is_the_papers_network_for_mnist() -> None:
    shapes = {name: tuple(value.shape) for name, value in network().named_parameters()}
    assert shapes["body.0.weight"] == (32, 1, 3, 3)
    assert shapes["body.4.weight"] == (64, 32, 3, 3)
    assert shapes["body.9.weight"] == (128, 64 * 7 * 7)
    assert shapes["head.weight"] == (10, 128)


def test_the_generator_alone_decides_the_weights() -> None:
    torch.manual_seed(1)
    first = network(0)
    torch.manual_seed(2)
    again, other = network(0), network(1)
    pairs = zip(first.parameters(), again.parameters(), other.parameters(), strict=True)
    for a, b, c in pairs:
        assert torch.equal(a, b)
        # Biases and batch norms start at constants; every drawn weight differs by seed.
        assert a.ndim == 1 or not torch.equal(a, c)


def test_the_head_reads_the_features() -> None:
    model = network().eval()
    images = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    features = model.features(images)
    assert features.shape == (3, 128)
    assert torch.equal(model.head(features), model(images))


def test_initial_scales_are_kaimings_and_xaviers() -> None:
    model = network()
    convolution, head = model.body[4].weight, model.head.weight
    assert isinstance(convolution, torch.Tensor)
    fan_in = 32 * 9
    assert convolution.abs().max() <= (6 / fan_in) ** 0.5
    torch.testing.assert_close(
        convolution.std(), torch.tensor((2 / fan_in) ** 0.5), rtol=0.05, atol=0
    )
    assert head.abs().max() <= (6 / (128 + 10)) ** 0.5
