"""The gradient that is written down against the one that torch traces."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from labelproof import Loss, parse_loss
from labelproof.losses import closed_form

SPECS = [
    f"{base}+sr(tau={tau},p={p},lambda0=2,normalize={normalize}{clamp})"
    for base in ("ce", "gce(q=0.7)", "fl(gamma=0.5)")
    for tau, p in ((0.5, 0.1), (0.1, 0.01), (1, 1))
    for normalize in ("true", "false")
    for clamp in ("", ",clamp=1e-7", ",clamp=0.05")
]


def batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(13, 7, generator=draws, dtype=torch.float64)
    logits[4] = 0
    return logits.to(dtype), torch.randint(7, (13,), generator=draws)


def value_and_gradient(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.detach().clone().requires_grad_()
    values = loss.per_example(logits, target)
    upstream = torch.linspace(0.5, 2, len(values), dtype=values.dtype)
    return values.detach(), torch.autograd.grad(values, logits, upstream)[0]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Tensor, Tensor]]:
    """The same by torch's own operations."""

    def compute(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        with monkeypatch.context() as patch:
            patch.setattr(closed_form, "fits", lambda *_: False)
            return value_and_gradient(loss, logits, target)

    return compute


@pytest.mark.parametrize("spec", SPECS)
def test_values_and_gradients_are_those_that_torch_traces(
    spec: str, traced: Callable[..., tuple[Tensor, Tensor]]
) -> None:
    loss = parse_loss(spec)
    logits, target = batch()
    assert closed_form.fits(logits, target)
    found, expected = value_and_gradient(loss, logits, target), traced(loss, logits, target)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_in_fewer_bits_it_is_as_near_as_torch(
    dtype: torch.dtype, traced: Callable[..., tuple[Tensor, Tensor]]
) -> None:
    loss = parse_loss("gce(q=0.7)+sr")
    logits, target = batch(dtype)
    exact, exact_gradient = value_and_gradient(loss, logits.double(), target)
    value, gradient = value_and_gradient(loss, logits, target)
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    _, torchs = traced(loss, logits, target)
    assert (value - exact).abs().max() < 1e-4
    error, yardstick = ((each - exact_gradient).norm() for each in (gradient, torchs))
    assert error < 2 * yardstick + 1e-6


def test_ignored_targets_have_no_gradient() -> None:
    loss = parse_loss("ce+sr")
    logits, target = batch()
    target[::3] = -100
    values, gradient = value_and_gradient(loss, logits, target)
    assert not values[::3].any()
    assert not gradient[::3].any()
    assert gradient[1::3].any(dim=1).all()


def test_a_gradient_of_the_gradient_is_there() -> None:
    loss = parse_loss("ce+sr(tau=0.5,p=0.3,lambda0=2,clamp=0.001)")
    logits, target = batch()
    logits = logits[:4].requires_grad_()
    assert torch.autograd.gradcheck(lambda given: loss(given, target[:4]), [logits])
    assert torch.autograd.gradgradcheck(lambda given: loss(given, target[:4]), [logits])


def test_a_graph_can_be_walked_twice() -> None:
    loss = parse_loss("ce+sr")
    logits, target = batch()
    logits.requires_grad_()
    value = loss(logits, target)
    (first,) = torch.autograd.grad(value, logits, retain_graph=True)
    (second,) = torch.autograd.grad(value, logits)
    assert torch.equal(first, second)


def test_an_epoch_may_move_between_the_passes() -> None:
    loss = parse_loss("ce+sr(tau=1,tau_rho=0.5,lambda0=1.2,rho=1.5)")
    logits, target = batch()
    _, expected = value_and_gradient(loss, logits, target)
    logits.requires_grad_()
    values = loss.per_example(logits, target)
    loss.set_epoch(9)
    upstream = torch.linspace(0.5, 2, len(values), dtype=values.dtype)
    assert torch.equal(torch.autograd.grad(values, logits, upstream)[0], expected)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own use
def test_transforms_of_functions_see_through() -> None:
    loss = parse_loss("ce+sr")
    logits, target = batch()
    _, gradient = value_and_gradient(loss, logits, target)

    def cost(row: Tensor, label: Tensor) -> Tensor:
        return loss(row.unsqueeze(0), label.unsqueeze(0))

    labels = target.clone()
    with_func = torch.stack(
        [torch.func.grad(cost)(row, label) for row, label in zip(logits, labels, strict=True)]
    )
    upstream = torch.linspace(0.5, 2, len(target), dtype=logits.dtype).unsqueeze(1)
    torch.testing.assert_close(with_func * upstream, gradient, rtol=1e-10, atol=1e-12)
    tangent = torch.ones_like(logits).cumsum(dim=1)
    with forward_ad.dual_level():
        moved = loss(forward_ad.make_dual(logits, tangent), target)
        slope = forward_ad.unpack_dual(moved).tangent
    expected = torch.func.jvp(lambda given: loss(given, target), (logits,), (tangent,))
    torch.testing.assert_close(slope, expected[1])


@pytest.mark.parametrize("normalize", ["true", "false"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_extremes_stay_finite(dtype: torch.dtype, normalize: str) -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, 0.0]]).to(dtype)
    loss = parse_loss(f"ce+sr(normalize={normalize})")
    values, gradient = value_and_gradient(loss, logits, torch.tensor([1, 0, 2]))
    assert values.isfinite().all()
    assert gradient.isfinite().all()
