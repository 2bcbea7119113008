"""The CUDA kernels against torch's own operations in float64; skipped where there is no CUDA.

Run on a GPU with `pytest tests/losses/test_kernels.py`.
"""

import pytest
import torch
from torch import Tensor

from labelproof import SparseRegularized, parse_loss

fits = pytest.importorskip("labelproof.losses.kernels", exc_type=ImportError).fits
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="the kernels run on CUDA, and there is none here"
)

SHAPES = [(1, 2), (7, 10), (41, 401), (5, 1271), (3, 20_011)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def batch(shape: tuple[int, int], dtype: torch.dtype, scale: float = 3.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(shape[1])
    logits = (scale * torch.randn(shape, generator=generator)).to(dtype)
    target = torch.randint(shape[1], shape[:1], generator=generator)
    return logits, target


def value_and_gradient(
    loss: SparseRegularized, logits: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    logits = logits.detach().clone().requires_grad_()
    values = loss.per_example(logits, target)
    # An upstream gradient that is neither 1 nor the same for all examples.
    upstream = torch.linspace(0.5, 2, len(values), dtype=values.dtype, device=values.device)
    (gradient,) = torch.autograd.grad(values, logits, upstream)
    return values.detach(), gradient


def distance(ours: Tensor, reference: Tensor) -> float:
    # Relative, but absolute where the reference is next to nothing: confident outputs of two
    # classes leave gradients of 1e-8, and float32's own digits end there.
    return float((ours.cpu().double() - reference).norm() / reference.norm().clamp_min(1e-2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("base", ["ce", "gce(q=0.7)", "fl(gamma=0.5)"])
def test_values_and_gradients_are_those_of_float64(base: str, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        for tau, p in ((0.5, 0.1), (0.1, 0.01), (1, 1)):
            for normalize in ("true", "false"):
                for clamp in ("", ",clamp=1e-7", ",clamp=0.001"):
                    numbers = f"tau={tau},p={p},lambda0=2,normalize={normalize}{clamp}"
                    check_against_float64(f"{base}+sr({numbers})", shape, dtype)


def check_against_float64(spec: str, shape: tuple[int, int], dtype: torch.dtype) -> None:
    logits, target = batch(shape, dtype)
    loss = parse_loss(spec)
    values, gradient = value_and_gradient(loss, logits.double(), target)
    # Torch's own operations in the same precision are the yardstick: where the gradient is a
    # difference of near equals, or below what half precision can write, they lose digits too.
    torch_values, torch_gradient = value_and_gradient(loss, logits, target)
    assert fits(logits.cuda(), target.cuda())
    our_values, our_gradient = value_and_gradient(loss.cuda(), logits.cuda(), target.cuda())
    assert (our_values.dtype, our_gradient.dtype) == (torch.float32, dtype)
    place = f"{spec} {shape}"
    assert distance(our_values, values) < 3 * distance(torch_values, values) + 1e-5, place
    bound = 3 * distance(torch_gradient, gradient) + 2e-5
    assert distance(our_gradient, gradient) < bound, place


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normalize", ["true", "false"])
def test_extremes_stay_finite(dtype: torch.dtype, normalize: str) -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4], [0.0, 0.0, 0.0]]).to(dtype).cuda()
    target = torch.tensor([1, 0, 2]).cuda()
    loss = parse_loss(f"ce+sr(normalize={normalize})").cuda()
    values, gradient = value_and_gradient(loss, logits, target)
    assert values.isfinite().all()
    assert gradient.isfinite().all()


def test_ignored_targets_and_class_weights() -> None:
    logits, target = batch((41, 401), torch.float32)
    target[::3] = -100
    weight = torch.rand(401, generator=torch.Generator().manual_seed(0))
    loss = parse_loss("ce+sr", weight=weight)
    reference = loss(logits.double(), target)
    torch.testing.assert_close(
        loss.cuda()(logits.cuda(), target.cuda()).cpu().double(), reference, rtol=1e-5, atol=0
    )


def test_a_gradient_of_the_gradient_is_there() -> None:
    logits, target = batch((7, 10), torch.float32)
    loss = parse_loss("ce+sr")

    def curvature(logits: Tensor, target: Tensor) -> Tensor:
        logits = logits.detach().requires_grad_()
        (first,) = torch.autograd.grad(loss(logits, target), logits, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), logits)
        return second

    reference = curvature(logits.double(), target)
    loss.cuda()
    assert distance(curvature(logits.cuda(), target.cuda()), reference) < 1e-4


def test_logits_that_are_not_contiguous() -> None:
    logits, target = batch((41, 401), torch.float32)
    loss = parse_loss("ce+sr")
    reference = loss(logits.double(), target)
    sliced = torch.stack([logits, logits], dim=2).cuda()[:, :, 0]
    assert not sliced.is_contiguous()
    assert distance(loss.cuda()(sliced, target.cuda()), reference) < 1e-5


def test_a_recorded_graph_follows_the_epoch() -> None:
    logits, target = (tensor.cuda() for tensor in batch((128, 10), torch.float32))
    logits.requires_grad_()
    loss = parse_loss("ce+sr(tau=1,tau_rho=0.9,lambda0=1.2,rho=1.1)").cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.autograd.grad(loss(logits, target), logits)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = loss(logits, target)
        (gradient,) = torch.autograd.grad(value, logits)
    for epoch in (0, 5, 20):
        loss.set_epoch(epoch)
        graph.replay()
        # A leaf of its own: that of the graph belongs to the stream it was recorded on.
        again = logits.detach().clone().requires_grad_()
        expected = loss(again, target)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected, again)[0])


@pytest.mark.parametrize("clamp", ["", ",clamp=0.001"])
@pytest.mark.parametrize("normalize", ["true", "false"])
@pytest.mark.parametrize("shape", [(6, 8), (6, 20_011)])
def test_masked_classes_follow_float64(shape: tuple[int, int], normalize: str, clamp: str) -> None:
    logits, target = batch(shape, torch.float32)
    # A class, nearly all of them, and more than a block of the largest size from the start.
    logits[0, 1], logits[1, :-1], logits[2, : shape[1] // 2] = (float("-inf"),) * 3
    target[:3] = shape[1] - 1
    loss = parse_loss(f"ce+sr(normalize={normalize}{clamp})")
    values, gradient = value_and_gradient(loss, logits.double(), target)
    our_values, our_gradient = value_and_gradient(loss.cuda(), logits.cuda(), target.cuda())
    assert our_gradient.isfinite().all()
    assert not our_gradient.cpu()[logits == float("-inf")].any()
    assert distance(our_values, values) < 1e-5
    assert distance(our_gradient, gradient) < 1e-4


def test_an_empty_batch_has_no_kernel() -> None:
    logits, target = torch.zeros(0, 4).cuda(), torch.zeros(0, dtype=torch.long).cuda()
    assert not fits(logits, target)
    assert parse_loss("ce+sr").cuda()(logits, target) == 0
