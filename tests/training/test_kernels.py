"""Convolution kernels and layers that a compiler fuses: torch's values and gradients."""

import copy
import itertools
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._inductor import config
from torch.nn import functional as F
from torch.testing import assert_close

from labelproof.models import make_network
from labelproof.training import kernels
from labelproof.training.kernels import FusibleMaxPool2d, FusibleReLU, fusing_options, make_fusible


@pytest.fixture(autouse=True)
def small_layers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels are tested on images that are too small to be worth them."""
    monkeypatch.setattr("labelproof.training.kernels._LEAST_WORK", 0)


def kinds(network: nn.Module) -> set[str]:
    return {type(module).__name__ for module in network.modules() if isinstance(module, nn.Conv2d)}


def cnn() -> nn.Module:
    how = {"input_shape": (3, 8, 8), "generator": torch.Generator().manual_seed(0)}
    return make_network("cnn4(width=12)", num_classes=5, **how).eval()


@pytest.mark.parametrize("convolution", kernels.CONVOLUTIONS)
def test_every_kernel_computes_the_same_and_can_be_undone(convolution: str) -> None:
    plain, other = cnn(), kernels.use_convolution(cnn(), convolution)
    images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    expected = plain(images)
    torch.testing.assert_close(other(images), expected, rtol=1e-4, atol=1e-4)
    assert ("Conv2d" in kinds(other)) or convolution != "torch"
    assert list(other.state_dict()) == list(plain.state_dict())
    for name, tensor in plain.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
    for twin in (copy.deepcopy(other), pickle.loads(pickle.dumps(other))):  # noqa: S301
        torch.testing.assert_close(twin(images), other(images))
        assert kinds(twin) == kinds(other)
    assert kinds(kernels.use_convolution(other, "torch")) == {"Conv2d"}
    assert torch.equal(other(images), expected)


def gradients(layer: nn.Module, images: Tensor) -> list[Tensor]:
    """Output and all gradients for an upstream gradient that differs everywhere."""
    images = images.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    output = layer(images)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(9))
    found = torch.autograd.grad(output, [images, *layer.parameters()], upstream.to(images.dtype))
    return [output.detach(), *found]


def assert_near(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        # By the tensor's own scale: a sum that cancels to nothing has no relative accuracy.
        scale = float(theirs.abs().max()) + 1e-30
        assert float((mine - theirs).abs().max()) <= tolerance * scale


def test_outputs_and_gradients_are_those_of_the_plain_layer() -> None:
    shapes: list[tuple[int, int, dict[str, Any]]] = [
        (3, 64, {"padding": 1}),
        (64, 196, {"padding": 1, "bias": False}),
        (1, 1, {"stride": 2}),
        (9, 8, {"dilation": 2, "padding": "same"}),
        (5, 7, {"padding": (0, 2), "stride": (2, 1)}),
        (8, 3, {"padding": "valid"}),
    ]
    draws = torch.Generator().manual_seed(0)
    layouts = (torch.contiguous_format, torch.channels_last)
    for (inward, outward, options), layout in itertools.product(shapes, layouts):
        plain = nn.Conv2d(inward, outward, 3, **options)
        padded = kernels.use_convolution(copy.deepcopy(plain), "padded")
        assert type(padded) is kernels.PaddedConv2d
        images = torch.randn(2, inward, 9, 8, generator=draws).to(memory_format=layout)
        assert_near(gradients(padded, images), gradients(plain, images), 1e-5)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    numbers=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6)),
    sides=st.tuples(st.integers(1, 11), st.integers(1, 11)),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    with_bias=st.booleans(),
    last=st.booleans(),
)
def test_winograd_is_the_convolution(numbers, sides, padding, with_bias: bool, last: bool):
    (number, channels, filters), (height, width) = numbers, sides
    # Some of these shapes the layer leaves to torch; the kernel is right for them all the same.
    padding = (max(padding[0], (4 - height) // 2), max(padding[1], (4 - width) // 2))
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    images, weight = draw(number, channels, height, width), draw(filters, channels, 3, 3)
    if last:
        images = images.to(memory_format=torch.channels_last)
    bias = draw(filters) if with_bias else None
    inputs = [tensor.requires_grad_() for tensor in (images, weight, bias) if tensor is not None]
    expected = F.conv2d(images, weight, bias, padding=padding)
    with torch.no_grad():
        output = kernels.winograd_forward(images, weight, bias, padding)
    torch.testing.assert_close(output, expected.detach(), atol=1e-11, rtol=0)
    upstream = draw(*expected.shape)
    with torch.no_grad():
        ours = kernels.winograd_backward(images, weight, upstream, padding, (True, True, with_bias))
    for mine, theirs in zip(ours, torch.autograd.grad(expected, inputs, upstream), strict=False):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=0)


def test_float32_agrees_with_torch():
    torch.manual_seed(0)
    for channels, filters, height, width, padding in (
        (64, 48, 16, 16, 1),
        (41, 33, 17, 13, 1),
        (16, 10, 14, 14, 0),
        (20, 20, 7, 9, 2),
        (16, 8, 9, 12, "same"),
        (16, 8, 9, 12, "valid"),
        (16, 8, 9, 12, (2, 0)),
        (16, 4, 32, 32, 1),  # more than is computed at once: two full chunks and a rest
    ):
        layer = nn.Conv2d(channels, filters, 3, padding=padding)
        images = torch.randn(67 if height == 32 else 20, channels, height, width)
        expected = gradients(copy.deepcopy(layer).double(), images.double())
        found = gradients(kernels.use_convolution(layer, "winograd"), images)
        assert type(layer) is kernels.WinogradConv2d
        assert_near(found, [tensor.float() for tensor in expected], 1e-5)


def test_layers_it_does_not_suit_are_left_alone():
    layers: dict[str, list[nn.Module]] = {
        "padded": [
            nn.Conv2d(8, 16, 3),
            nn.Conv2d(6, 6, 3, groups=3),
            nn.Conv2d(3, 5, 3, padding=1, padding_mode="reflect"),
            nn.ConvTranspose2d(3, 5, 3),
        ],
        "winograd": [
            nn.Conv2d(16, 8, 3, stride=2, padding=1),
            nn.Conv2d(16, 8, 3, dilation=2),
            nn.Conv2d(16, 8, 3, groups=2),
            nn.Conv2d(16, 8, 5, padding=2),
            nn.Conv2d(16, 8, (3, 1)),
            nn.Conv2d(16, 8, 3, padding=1, padding_mode="circular"),
        ],
    }
    for convolution, others in layers.items():
        for layer in others:
            kind = type(layer)
            assert type(kernels.use_convolution(nn.Sequential(layer), convolution)[0]) is kind


def test_other_inputs_and_modes_go_to_torch(monkeypatch: pytest.MonkeyPatch):
    for images in (
        torch.randn(16, 12, 12),  # without a batch
        torch.randn(1, 16, 8, 8),  # a few tiles only
        torch.randn(64, 16, 2, 2),  # mostly empty tiles
        torch.randn(0, 16, 8, 8),
    ):
        layer = nn.Conv2d(16, 8, 3, padding=1)
        expected = layer(images)
        assert torch.equal(kernels.use_convolution(layer, "winograd")(images), expected)
    layer = kernels.use_convolution(nn.Conv2d(16, 8, 3, padding=1), "winograd")
    images = torch.randn(64, 16, 8, 8)
    plain = kernels.use_convolution(copy.deepcopy(layer), "torch")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer(images), plain(images))
    assert torch.equal(layer.bfloat16()(images.bfloat16()), plain.bfloat16()(images.bfloat16()))
    # So do layers with little to do.
    layer = kernels.use_convolution(nn.Conv2d(16, 16, 3, padding=1), "winograd")
    images = torch.randn(64, 16, 8, 8, generator=torch.Generator().manual_seed(0))
    fast = layer(images)
    monkeypatch.undo()
    plain = layer(images)
    assert type(fast.grad_fn).__name__ == "_ConvolutionBackward"
    assert type(plain.grad_fn).__name__ == "ConvolutionBackward0"
    torch.testing.assert_close(fast, plain, atol=1e-4, rtol=1e-4)


# torch's own, while it traces any function with a gradient of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


def test_compiled_results_are_those_of_the_plain_layers_ties_included() -> None:
    plain = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))
    fusible = make_fusible(copy.deepcopy(plain))
    assert [type(layer) for layer in fusible] == [FusibleReLU, FusibleMaxPool2d]
    for shape, layout in (
        ((2, 3, 5, 6), torch.contiguous_format),
        ((2, 3, 4, 6), torch.channels_last),
    ):
        # Small whole numbers: most windows have their greatest twice, many have zeros only.
        draws = torch.Generator().manual_seed(0)
        images = torch.randint(-2, 3, shape, generator=draws).float().to(memory_format=layout)
        expected = gradients(plain, images)
        # Traced and differentiated as for the GPU's compiler, then run by torch itself.
        compiled: Any = torch.compile(fusible, backend="aot_eager", dynamic=False)
        for network in (fusible, compiled):
            assert_close(gradients(network, images), expected, rtol=0, atol=0)


def test_a_compiler_is_shown_no_pooling() -> None:
    seen: list[str] = []

    def look(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    images = torch.zeros(1, 1, 4, 4)
    pooling = nn.MaxPool2d(2)
    torch.compile(pooling, backend=aot_autograd(fw_compiler=look))(images)
    assert any("max_pool2d" in name for name in seen)
    seen.clear()
    torch.compile(make_fusible(pooling), backend=aot_autograd(fw_compiler=look))(images)
    assert seen
    assert not any("max_pool2d" in name for name in seen)


def test_other_layers_are_left_alone_and_the_compilers_options_are_known_to_it() -> None:
    options = ({"stride": 1}, {"padding": 1}, {"dilation": 2}, {"ceil_mode": True})
    pools = [nn.MaxPool2d(2, **each) for each in (*options, {"return_indices": True})]
    for layer in (*pools, nn.MaxPool2d(3), nn.ReLU(inplace=True)):
        kind = type(layer)
        assert type(make_fusible(layer)) is kind
    network = make_network("cnn4(width=4,hidden=8)", num_classes=3, input_shape=(1, 8, 8))
    assert fusing_options([network]) == {}
    options = fusing_options([nn.Linear(2, 2), make_fusible(network)])
    assert options
    assert all(hasattr(config, name) for name in options)
