from __future__ import annotations

import pytest
import torch
from torch import Tensor

from labelproof import CrossEntropy, Loss, SparseRegularized, parse_loss
from labelproof.losses import Outputs, PointwiseLoss
from labelproof.losses.gradient import has_gradient, mean_and_gradient

BASES = [
    "ce",
    "gce(q=0.7)",
    "gce(q=0.3,clamp=0.01)",
    "fl",
    "mae",
    "phuber",
    "rce(A=-4)",
    "sce",
    "js",
]
KNOWN = [*BASES, *(f"{base}+sr(lambda0=2)" for base in BASES), "ce+sr(clamp=0.05,normalize=false)"]


def batch() -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(5)
    logits = 3 * torch.randn(13, 7, generator=draws, dtype=torch.float64)
    logits[4] = 0
    return logits, torch.randint(7, (13,), generator=draws)


@pytest.mark.parametrize("spec", KNOWN)
@pytest.mark.parametrize("weighed", [False, True])
def test_it_is_what_torch_traces(spec: str, weighed: bool) -> None:
    loss = parse_loss(spec)
    loss.set_epoch(3)
    logits, target = batch()
    weight = torch.linspace(0, 2, 13, dtype=torch.float64) if weighed else None
    assert has_gradient(loss)
    found = mean_and_gradient(loss, logits, target, weight=weight)
    given = logits.clone().requires_grad_()
    values = loss.per_example(given, target)
    value = (values if weight is None else values * weight).mean()
    (gradient,) = torch.autograd.grad(value, given)
    torch.testing.assert_close(found.mean, value.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.gradient, gradient, rtol=1e-12, atol=1e-12)
    assert not found.gradient.requires_grad
    if isinstance(loss, SparseRegularized):
        parts = loss.parts(logits, target)
        assert found.penalty is not None
        torch.testing.assert_close(found.penalty.mean(), parts.penalty)
        assert found.penalty.shape == (13, 1)
    else:
        assert found.penalty is None
        torch.testing.assert_close(found.log_probabilities, torch.log_softmax(logits, dim=1))


@pytest.mark.parametrize("spec", BASES)
def test_a_slope_is_the_derivative(spec: str) -> None:
    loss = parse_loss(spec)
    assert isinstance(loss, PointwiseLoss)
    log_probability = torch.linspace(-6, -1e-3, 50, dtype=torch.float64)
    traced = PointwiseLoss.value_and_slope(loss, log_probability)
    torch.testing.assert_close(
        loss.value_and_slope(log_probability), traced, rtol=1e-12, atol=1e-12
    )


class Doubled(CrossEntropy):
    def pointwise(self, log_probability: Tensor) -> Tensor:
        return -2 * log_probability


@pytest.mark.parametrize(
    "loss",
    [
        *(parse_loss(f"{base}+sr(lambda0=2)") for base in BASES),
        SparseRegularized(Doubled()),
        SparseRegularized(CrossEntropy(), normalize=False, clamp=0.05),
    ],
    ids=lambda loss: type(loss.base).__name__,
)
def test_the_mean_has_the_gradients_of_its_values(loss: SparseRegularized) -> None:
    logits, target = batch()
    logits.requires_grad_()
    value = loss(logits, target)
    expected = loss.per_example(logits, target).mean()
    loss.set_epoch(9)  # the graph is that of the epoch it was made in
    (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
    (plain,) = torch.autograd.grad(value, logits)
    (traced,) = torch.autograd.grad(expected, logits, create_graph=True)
    torch.testing.assert_close((value, gradient, plain), (expected, traced, traced))
    loss.set_epoch(0)
    if "Focal" not in str(loss):  # whose slope has a clamp
        logits = logits[:3].detach().requires_grad_()
        assert torch.autograd.gradgradcheck(lambda given: loss(given, target[:3]), [logits])


class OfABatch(CrossEntropy):
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target).square()


class OfALabel(CrossEntropy):
    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        return 2 * super().index_values(outputs, target)


def test_parameters_of_a_loss_are_trained() -> None:
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
    torch.testing.assert_close(2 * base.scale.grad, loss.parts(logits, target).base)


class OfValues(CrossEntropy):
    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        return 2 * super().values(outputs, target)


@pytest.mark.parametrize("family", [OfALabel, OfValues])
def test_an_override_counts_under_sparse_regularization(family: type[CrossEntropy]) -> None:
    logits, target = batch()
    loss = SparseRegularized(family(), weight=2)
    parts = loss.parts(logits, target)
    plain = SparseRegularized(CrossEntropy(), weight=2).parts(logits, target)
    torch.testing.assert_close(loss(logits, target), parts.total)
    torch.testing.assert_close(parts.base, 2 * plain.base)
    given = logits.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(given, target), given)
    (expected,) = torch.autograd.grad(loss.parts(given, target).total, given)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(
    "loss",
    [
        parse_loss("nce+mae"),
        parse_loss("rce(clamp=1e-7)"),
        parse_loss("sce(clamp=1e-7)"),
        parse_loss("nl"),
        CrossEntropy(reduction="sum"),
        CrossEntropy(weight=torch.ones(7)),
        CrossEntropy(check=True),
        SparseRegularized(CrossEntropy(), vector=0.1),
        SparseRegularized(torch.nn.CrossEntropyLoss()),
        OfABatch(),
        OfALabel(),
        SparseRegularized(OfALabel()),
        SparseRegularized(OfABatch()),
        OfValues(),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_what_has_a_rule_of_its_own_is_not_known(loss: Loss) -> None:
    assert not has_gradient(loss)
