"""The gradient that is written down against the one that torch traces."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing import assert_close

from labelproof import CrossEntropy, Loss, SparseRegularized, parse_loss
from labelproof.losses import Outputs, PointwiseLoss
from labelproof.losses.gradient import has_gradient, mean_and_gradient

BASES = [
    "ce",
    "gce",
    "gce(q=0.3,clamp=0.01)",
    "gce(q=0.001)",
    "fl",
    "mae",
    "phuber",
    "rce(A=-4)",
    "sce",
    "js",
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


def batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(5)
    logits = 3 * torch.randn(13, 7, generator=draws, dtype=torch.float64)
    logits[4] = 0
    return logits.to(dtype), torch.randint(7, (13,), generator=draws)


def mean_and_slope(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value, logits)[0]


def traced(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The same by torch's own operations, which each example's value comes from."""
    logits = logits.detach().clone().requires_grad_()
    value = loss.per_example(logits, target).mean()
    return value.detach(), torch.autograd.grad(value, logits)[0]


def test_it_is_what_torch_traces():
    logits, target = batch()
    weight = torch.linspace(0, 2, 13, dtype=torch.float64)
    for text in (*BASES, *REGULARIZED):
        loss = parse_loss(text)
        loss.set_epoch(3)
        assert has_gradient(loss), text
        expected = traced(loss, logits, target)
        assert_close(mean_and_slope(loss, logits, target), expected, rtol=1e-11, atol=1e-12)
        found = mean_and_gradient(loss, logits, target)
        assert_close((found.mean, found.gradient), expected, rtol=1e-11, atol=1e-12)
        given = logits.clone().requires_grad_()
        mean = (loss.per_example(given, target) * weight).mean()
        weighed = mean_and_gradient(loss, logits, target, weight=weight)
        assert_close((weighed.mean, weighed.gradient), (mean, *torch.autograd.grad(mean, given)))
        if isinstance(loss, SparseRegularized):
            assert found.penalty is not None
            assert_close(found.penalty.mean(), loss.parts(logits, target).penalty)
        else:
            assert found.penalty is None
            assert_close(found.log_probabilities, torch.log_softmax(logits, dim=1))


def test_a_slope_is_the_derivative():
    log_probability = torch.linspace(-6, -1e-3, 50, dtype=torch.float64)
    for text in BASES:
        loss = parse_loss(text)
        assert isinstance(loss, PointwiseLoss)
        expected = PointwiseLoss.value_and_slope(loss, log_probability)
        assert_close(loss.value_and_slope(log_probability), expected, rtol=1e-11, atol=1e-12)


def test_fewer_bits_are_as_near_as_torch():
    loss = parse_loss("gce(q=0.7)+sr")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        logits, target = batch(dtype)
        exact, exact_gradient = traced(loss, logits.double(), target)
        value, gradient = mean_and_slope(loss, logits, target)
        assert (value.dtype, gradient.dtype) == (torch.float32, dtype)
        assert abs(value - exact) < 1e-4
        yardstick = (traced(loss, logits, target)[1] - exact_gradient).norm()
        assert (gradient - exact_gradient).norm() < 2 * yardstick + 1e-6


def test_the_graph_is_that_of_its_epoch_and_can_be_walked_twice():
    loss = parse_loss("ce+sr(tau=1,tau_rho=0.5,lambda0=1.2,rho=1.5)")
    logits, target = batch()
    _, expected = mean_and_slope(loss, logits, target)
    value = loss(logits.requires_grad_(), target)
    loss.set_epoch(9)
    for _ in range(2):
        (gradient,) = torch.autograd.grad(value, logits, retain_graph=True)
        assert torch.equal(gradient, expected)
    (differentiable,) = torch.autograd.grad(value, logits, create_graph=True)
    assert_close(differentiable, expected)


def test_a_gradient_of_the_gradient_is_there():
    logits, target = batch()
    logits = logits[:3].requires_grad_()
    for text in ("ce", "mae", "gce", "sce", "ce+sr(p=0.3,clamp=0.001)", "gce+sr(normalize=false)"):
        loss = parse_loss(text)
        cost: Callable[[Tensor], Tensor] = lambda given, loss=loss: loss(given, target[:3])  # noqa: E731
        assert torch.autograd.gradcheck(cost, [logits]), text
        assert torch.autograd.gradgradcheck(cost, [logits]), text


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own use
def test_transforms_of_functions_see_through():
    loss = parse_loss("ce+sr")
    logits, target = batch()
    _, expected = mean_and_slope(loss, logits, target)
    assert_close(torch.func.grad(lambda given: loss(given, target))(logits), expected)
    tangent = torch.ones_like(logits).cumsum(dim=1)
    with forward_ad.dual_level():
        moved = loss(forward_ad.make_dual(logits, tangent), target)
        slope = forward_ad.unpack_dual(moved).tangent
    assert_close(slope, (expected * tangent).sum())


def test_extremes_stay_finite():
    rows = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, 0.0]])
    for normalize in ("true", "false"):
        loss = parse_loss(f"ce+sr(normalize={normalize})")
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            value, gradient = mean_and_slope(loss, rows.to(dtype), torch.tensor([1, 0, 2]))
            assert value.isfinite()
            assert gradient.isfinite().all()


class Doubled(CrossEntropy):
    def pointwise(self, log_probability: Tensor) -> Tensor:
        return -2 * log_probability


class DoubledForALabel(CrossEntropy):
    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        return 2 * super().index_values(outputs, target)


class DoubledValues(CrossEntropy):
    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        return 2 * super().values(outputs, target)


class SquaredBatch(CrossEntropy):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target).square()


def test_an_override_counts_alone_and_under_sparse_regularization():
    logits, target = batch()
    plain = mean_and_slope(CrossEntropy(), logits, target)
    base = SparseRegularized(CrossEntropy(), weight=2).parts(logits, target).base
    for family in (Doubled, DoubledForALabel, DoubledValues):
        value, gradient = mean_and_slope(family(), logits, target)
        assert_close((value, gradient), (2 * plain[0], 2 * plain[1]), msg=family.__name__)
        loss = SparseRegularized(family(), weight=2)
        parts = loss.parts(given := logits.clone().requires_grad_(), target)
        assert_close(parts.base, 2 * base)
        expected = parts.total, *torch.autograd.grad(parts.total, given)
        assert_close(mean_and_slope(loss, logits, target), expected, msg=family.__name__)


def test_parameters_of_a_loss_are_trained():
    class Learned(CrossEntropy):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

        def pointwise(self, log_probability: Tensor) -> Tensor:
            return self.scale * super().pointwise(log_probability)

    logits, target = batch()
    base = Learned()
    loss = SparseRegularized(base)
    loss(logits.requires_grad_(), target).backward()
    assert base.scale.grad is not None
    assert_close(2 * base.scale.grad, loss.parts(logits, target).base)


def test_a_loss_with_rules_of_its_own_is_not_known():
    for loss in (
        *map(parse_loss, ("nce+mae", "rce(clamp=1e-7)", "sce(clamp=1e-7)", "nl")),
        CrossEntropy(reduction="sum"),
        CrossEntropy(weight=torch.ones(7)),
        CrossEntropy(check=True),
        SparseRegularized(CrossEntropy(), vector=0.1),
        SparseRegularized(torch.nn.CrossEntropyLoss()),
        *(each for kind in (SquaredBatch, DoubledForALabel, DoubledValues) for each in (kind(),)),
        *(SparseRegularized(kind()) for kind in (SquaredBatch, DoubledForALabel)),
    ):
        assert not has_gradient(loss), loss
