"""A class that is masked with a logit of minus infinity takes no part, in the gradient either."""

import math

import pytest
import torch
from losses.catalogue import NUM_CLASSES, batch
from torch import Tensor
from torch.testing import assert_close

from labelproof import Loss, SparseRegularized, parse_loss, sharpen
from labelproof.losses.gradient import mean_and_gradient

REGULARIZED = ["ce+sr", "ce+sr(clamp=0.01)", "gce(q=0.7)+sr", "ce+sr(normalize=false)"]


def masked(logits: Tensor, *classes: int) -> Tensor:
    """A copy in which these classes cannot be."""
    copy = logits.clone()
    copy[:, list(classes)] = -math.inf
    return copy


def value_and_gradient(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    values = loss.per_example(logits, target)
    (gradient,) = torch.autograd.grad(values, logits, torch.ones_like(values))
    return values.detach(), gradient


def test_regularized_it_is_the_loss_of_the_other_classes() -> None:
    logits, label = batch(5, 4)
    wider = torch.cat([logits, torch.full((5, 2), -math.inf)], dim=1)
    for text in ("ce+sr", "gce(q=0.7)+sr", "10*mae+ce+sr", "ce+sr(p=1)"):
        values, gradient = value_and_gradient(parse_loss(text), wider, label)
        expected, expected_gradient = value_and_gradient(parse_loss(text), logits, label)
        assert_close(values, expected)
        assert_close(gradient[:, :4], expected_gradient)


@pytest.mark.parametrize("text", REGULARIZED)
@pytest.mark.parametrize("own", [False, True])
def test_every_way_to_the_gradient_gives_the_same(text: str, own: bool) -> None:
    loss = parse_loss(text, reduction="sum")
    assert isinstance(loss, SparseRegularized)
    logits, label = batch(4, NUM_CLASSES)
    label = torch.where(label == 3, 2, label)
    label[0] = 3 if own else 1
    given = masked(logits, 3)
    values, gradient = value_and_gradient(loss, given, label)
    # A single pixel goes through torch's own operations.
    pixel, pixel_gradient = value_and_gradient(loss, given.unsqueeze(2), label.unsqueeze(1))
    assert_close(pixel.squeeze(1), values)
    assert_close(pixel_gradient.squeeze(2), gradient)
    mean = mean_and_gradient(parse_loss(text), given, label)
    assert_close(mean.mean, values.mean())
    assert_close(mean.gradient, gradient / 4)


def test_an_example_of_which_only_zeros_are_left_is_not_divided_by_zero() -> None:
    given = torch.tensor([[0.0, 0.0, -math.inf]])
    assert_close(sharpen(given, temperature=0.5), given)
    assert parse_loss("ce+sr")(given, torch.tensor([0])).isfinite()


def test_nan_stays_nan() -> None:
    given = torch.tensor([[0.0, math.nan, 1.0], [0.0, -math.inf, 1.0]])
    values = parse_loss("ce+sr", reduction="none")(given, torch.tensor([0, 0]))
    assert values.isnan().tolist() == [True, False]
    assert parse_loss("nce")(given, torch.tensor([0, 0])).isnan()


@pytest.mark.parametrize("text", ["nce", "nfl", "nsce"])
def test_normalized_it_is_the_limit(text: str) -> None:
    logits, label = batch(4, NUM_CLASSES)
    near = logits.clone()
    near[:, 3] = -1e12
    for target in (label % 3, torch.full_like(label, 3)):
        values, _ = value_and_gradient(parse_loss(text), masked(logits, 3), target)
        limit, _ = value_and_gradient(parse_loss(text), near, target)
        assert_close(values, limit, rtol=0, atol=1e-9)
