from dataclasses import replace

import pytest
import torch

from labelproof import parse_loss
from labelproof.data import load_digits
from labelproof.models import FourLayerCNN
from labelproof.training import Batches, EpochMetrics, Recipe, predict, train_epochs

RECIPE = Recipe(epochs=3)


def train(spec: str, recipe: Recipe = RECIPE) -> tuple[FourLayerCNN, list[EpochMetrics]]:
    digits = load_digits()
    generator = torch.Generator().manual_seed(0)
    network = FourLayerCNN(10, digits.image_shape, width=8, generator=generator)
    data = Batches(digits, digits.train.labels)
    return network, list(train_epochs(network, parse_loss(spec), data, recipe, generator=generator))


def test_it_learns_clean_digits_and_says_so() -> None:
    _, metrics = train("ce")
    assert [m.epoch for m in metrics] == [0, 1, 2]
    assert metrics[-1].test_accuracy > 90
    assert metrics[-1].train_loss < metrics[0].train_loss
    assert [m.weight for m in metrics] == [0, 0, 0]


def test_the_learning_rate_is_a_cosine_stepped_each_epoch() -> None:
    _, metrics = train("ce")
    assert [m.learning_rate for m in metrics] == pytest.approx([0.01, 0.0075, 0.0025])


def test_the_schedule_moves_and_the_sparse_rate_is_reported() -> None:
    _, metrics = train("ce+sr(tau=0.5,lambda0=1,rho=2,normalize=false)")
    assert [m.weight for m in metrics] == [1, 2, 4]
    assert 0 <= metrics[0].sparse_rate < metrics[-1].sparse_rate <= 1


def test_the_same_seed_gives_the_same_bytes() -> None:
    torch.manual_seed(1)
    first, _ = train("ce+sr")
    torch.manual_seed(2)
    again, _ = train("ce+sr")
    for a, b in zip(first.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_single_image_left_over_is_no_error() -> None:
    # 1347 = 2 * 673 + 1, and batch norm needs two values.
    _, metrics = train("ce", replace(RECIPE, epochs=1, batch_size=673))
    assert len(metrics) == 1


def test_predictions_do_not_depend_on_the_chunks() -> None:
    network, _ = train("ce", replace(RECIPE, epochs=1))
    digits = load_digits()
    images = Batches(digits, digits.train.labels).train_images
    torch.testing.assert_close(predict(network, images)[:10], predict(network, images[:10]))
