"""The gradient that is written down against the one that torch traces."""

import math
from collections.abc import Callable

import pytest
import torch
from losses.catalogue import NUM_CLASSES, batch, value_and_gradient
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing import assert_close

from labelproof import CrossEntropy, SparseRegularized, parse_loss, sharpen
from labelproof.losses import Outputs
from labelproof.losses.gradient import has_gradient, mean_and_gradient

BASES = [
    *("ce", "gce", "gce(q=0.3,clamp=0.01)", "gce(q=0.001)", "fl"),
    *("mae", "phuber", "rce(A=-4)", "sce", "js"),
]
REGULARIZED = [
    *(f"{base}+sr(lambda0=2)" for base in BASES),
    *(
        f"ce+sr(tau={tau},p={p},lambda0=2,normalize={normalize}{clamp})"
        for tau, p in ((0.5, 0.1), (0.1, 0.01), (1, 1))
        for normalize in ("true", "false")
        for clamp in ("", ",clamp=0.05")
    ),
]


def examples() -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(5)
    logits = 3 * torch.randn(13, 7, generator=draws, dtype=torch.float64)
    logits[4] = 0
    return logits, torch.randint(7, (13,), generator=draws)


def test_it_is_what_torch_traces():
    logits, target = examples()
    weight = torch.linspace(0, 2, 13, dtype=torch.float64)
    for text in (*BASES, *REGULARIZED):
        loss = parse_loss(text)
        loss.set_epoch(3)
        assert has_gradient(loss), text
        # Each example's value comes from torch's own operations.
        expected = value_and_gradient(
            lambda *given, loss=loss: loss.per_example(*given).mean(), logits, target
        )
        assert_close(value_and_gradient(loss, logits, target), expected, rtol=1e-11, atol=1e-12)
        found = mean_and_gradient(loss, logits, target)
        assert_close((found.mean, found.gradient), expected, rtol=1e-11, atol=1e-12)
        given = logits.clone().requires_grad_()
        mean = (loss.per_example(given, target) * weight).mean()
        weighed = mean_and_gradient(loss, logits, target, weight=weight)
        assert_close((weighed.mean, weighed.gradient), (mean, *torch.autograd.grad(mean, given)))
        if isinstance(loss, SparseRegularized):
            assert_close(found.penalty.mean(), loss.parts(logits, target).penalty)
        else:
            assert found.penalty is None
            assert_close(found.log_probabilities, torch.log_softmax(logits, dim=1))


def test_the_graph_is_that_of_its_epoch_and_can_be_walked_twice():
    loss = parse_loss("ce+sr(tau=1,tau_rho=0.5,lambda0=1.2,rho=1.5)")
    logits, target = examples()
    _, expected = value_and_gradient(loss, logits, target)
    value = loss(logits.requires_grad_(), target)
    loss.set_epoch(9)
    for _ in range(2):
        (gradient,) = torch.autograd.grad(value, logits, retain_graph=True)
        assert torch.equal(gradient, expected)
    (differentiable,) = torch.autograd.grad(value, logits, create_graph=True)
    assert_close(differentiable, expected)


def test_a_gradient_of_the_gradient_is_there():
    logits, target = examples()
    logits = logits[:3].requires_grad_()
    for text in ("ce", "mae", "gce", "sce", "ce+sr(p=0.3,clamp=0.001)", "gce+sr(normalize=false)"):
        loss = parse_loss(text)
        cost: Callable[[Tensor], Tensor] = lambda given, loss=loss: loss(given, target[:3])  # noqa: E731
        assert torch.autograd.gradcheck(cost, [logits]), text
        assert torch.autograd.gradgradcheck(cost, [logits]), text


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own use
def test_transforms_of_functions_see_through():
    loss = parse_loss("ce+sr")
    logits, target = examples()
    _, expected = value_and_gradient(loss, logits, target)
    assert_close(torch.func.grad(lambda given: loss(given, target))(logits), expected)
    tangent = torch.ones_like(logits).cumsum(dim=1)
    with forward_ad.dual_level():
        moved = loss(forward_ad.make_dual(logits, tangent), target)
        slope = forward_ad.unpack_dual(moved).tangent
    assert_close(slope, (expected * tangent).sum())


class Doubled(CrossEntropy):
    def pointwise(self, log_probability: Tensor) -> Tensor:
        return -2 * log_probability


class DoubledForALabel(CrossEntropy):
    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        return 2 * super().index_values(outputs, target)


class DoubledValues(CrossEntropy):
    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        return 2 * super().values(outputs, target)


def test_an_override_counts_alone_and_under_sparse_regularization():
    logits, target = examples()
    plain = value_and_gradient(CrossEntropy(), logits, target)
    base = SparseRegularized(CrossEntropy(), weight=2).parts(logits, target).base
    for family in (Doubled, DoubledForALabel, DoubledValues):
        value, gradient = value_and_gradient(family(), logits, target)
        assert_close((value, gradient), (2 * plain[0], 2 * plain[1]), msg=family.__name__)
        loss = SparseRegularized(family(), weight=2)
        parts = loss.parts(given := logits.clone().requires_grad_(), target)
        assert_close(parts.base, 2 * base)
        expected = parts.total, *torch.autograd.grad(parts.total, given)
        assert_close(value_and_gradient(loss, logits, target), expected, msg=family.__name__)


def test_parameters_of_a_loss_are_trained():
    class Learned(CrossEntropy):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

        def pointwise(self, log_probability: Tensor) -> Tensor:
            return self.scale * super().pointwise(log_probability)

    logits, target = examples()
    base = Learned()
    loss = SparseRegularized(base)
    loss(logits.requires_grad_(), target).backward()
    assert_close(2 * base.scale.grad, loss.parts(logits, target).base)


def test_a_loss_with_rules_of_its_own_is_not_known():
    for loss in (
        *map(parse_loss, ("nce+mae", "rce(clamp=1e-7)", "sce(clamp=1e-7)", "nl")),
        CrossEntropy(reduction="sum"),
        CrossEntropy(weight=torch.ones(7)),
        CrossEntropy(check=True),
        SparseRegularized(CrossEntropy(), vector=0.1),
        SparseRegularized(torch.nn.CrossEntropyLoss()),
        *(Doubled(), DoubledForALabel(), DoubledValues()),
        *(SparseRegularized(kind()) for kind in (Doubled, DoubledForALabel)),
    ):
        assert not has_gradient(loss), loss


def test_every_way_to_the_gradient_gives_with_a_masked_class_the_loss_of_the_others():
    logits, label = batch(5, 4)
    wider = torch.cat([logits, torch.full((5, 2), -math.inf)], dim=1)
    for text in ("ce+sr", "gce(q=0.7)+sr", "10*mae+ce+sr", "ce+sr(p=1)"):
        loss = parse_loss(text, reduction="none")
        values, gradient = value_and_gradient(loss, wider, label)
        assert_close((values, gradient[:, :4]), value_and_gradient(loss, logits, label))
    logits, label = batch(4, NUM_CLASSES)
    given = logits.clone()
    given[:, 3] = -math.inf
    for text in ("ce+sr", "ce+sr(clamp=0.01)", "gce(q=0.7)+sr", "ce+sr(normalize=false)"):
        loss = parse_loss(text, reduction="none")
        for first in (1, 3):  # a label that is masked, too
            label = torch.where(label == 3, 2, label)
            label[0] = first
            values, gradient = value_and_gradient(loss, given, label)
            # A single pixel goes through torch's own operations.
            pixel = value_and_gradient(loss, given.unsqueeze(2), label.unsqueeze(1))
            assert_close((pixel[0].squeeze(1), pixel[1].squeeze(2)), (values, gradient))
            mean = value_and_gradient(parse_loss(text), given, label)
            assert_close(mean, (values.mean(), gradient / 4))
    # A normalised loss is the limit.
    near = logits.clone()
    near[:, 3] = -1e12
    for text in ("nce", "nfl", "nsce"):
        loss = parse_loss(text, reduction="none")
        for target in (label % 3, torch.full_like(label, 3)):
            assert_close(loss(given, target), loss(near, target), rtol=0, atol=1e-9)


def test_zeros_that_are_left_are_not_divided_by_zero_and_nan_stays_nan():
    given = torch.tensor([[0.0, 0.0, -math.inf]])
    assert_close(sharpen(given, temperature=0.5), given)
    assert parse_loss("ce+sr")(given, torch.tensor([0])).isfinite()
    given = torch.tensor([[0.0, math.nan, 1.0], [0.0, -math.inf, 1.0]])
    values = parse_loss("ce+sr", reduction="none")(given, torch.tensor([0, 0]))
    assert values.isnan().tolist() == [True, False]
    assert parse_loss("nce")(given, torch.tensor([0, 0])).isnan()
