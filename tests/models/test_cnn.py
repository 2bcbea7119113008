import torch

from labelproof.models import EightLayerCNN, FourLayerCNN


def network(seed: int = 0) -> FourLayerCNN:
    return FourLayerCNN(10, (1, 28, 28), generator=torch.Generator().manual_seed(seed))


def test_it_is_the_papers_network_for_mnist() -> None:
    shapes = {name: tuple(value.shape) for name, value in network().named_parameters()}
    assert shapes["body.0.weight"] == (32, 1, 3, 3)
    assert shapes["body.4.weight"] == (64, 32, 3, 3)
    assert shapes["body.9.weight"] == (128, 64 * 7 * 7)
    assert shapes["head.weight"] == (10, 128)


def test_a_seed_means_the_weights_it_always_meant() -> None:
    expected = [0.12814660370349884, -0.14534038305282593, -0.1913057118654251]
    torch.testing.assert_close(network().head.weight[0, :3], torch.tensor(expected))


def test_eight_layers_are_the_papers_network_for_cifar10() -> None:
    model = EightLayerCNN(10, (3, 32, 32), generator=torch.Generator().manual_seed(0))
    shapes = [tuple(value.shape) for value in model.parameters() if value.ndim > 1]
    assert shapes == [
        (64, 3, 3, 3),
        (64, 64, 3, 3),
        (128, 64, 3, 3),
        (128, 128, 3, 3),
        (196, 128, 3, 3),
        (196, 196, 3, 3),
        (256, 196 * 4 * 4),
        (10, 256),
    ]
    assert sum(value.numel() for value in model.parameters()) == 1_639_018
