"""Convolutions by matrix products: torch's values and gradients, and torch's own elsewhere."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from labelproof.training.kernels.convolution import (
    CONVOLUTIONS,
    default_convolution,
    use_convolution,
)
from labelproof.training.kernels.winograd import (
    WinogradConv2d,
    unfolded_backward,
    unfolded_forward,
    winograd_backward,
    winograd_forward,
)

steady = settings(deadline=None, derandomize=True, max_examples=40)

KERNELS = {
    "winograd": (winograd_forward, winograd_backward),
    "unfolded": (unfolded_forward, unfolded_backward),
}


@pytest.fixture(autouse=True)
def small_layers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels are tested on images that are too small to be worth them."""
    monkeypatch.setattr("labelproof.training.kernels.winograd._LEAST_WORK", 0)


def gradients(layer: nn.Module, images: Tensor) -> list[Tensor]:
    """Output and all gradients for an upstream gradient that differs everywhere."""
    images = images.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    output = layer(images)
    upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(9))
    found = torch.autograd.grad(
        output, [images, *layer.parameters()], upstream.to(images.dtype).to(output.device)
    )
    return [output.detach(), *found]


def assert_close(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        # By the tensor's own scale: a sum that cancels to nothing has no relative accuracy.
        scale = float(theirs.abs().max()) + 1e-30
        assert float((mine - theirs).abs().max()) <= tolerance * scale


@pytest.mark.parametrize("kernel", KERNELS)
@steady
@given(
    number=st.integers(1, 3),
    channels=st.integers(1, 5),
    filters=st.integers(1, 6),
    height=st.integers(1, 11),
    width=st.integers(1, 11),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    with_bias=st.booleans(),
    last=st.booleans(),
)
def test_kernels_are_the_convolution(
    kernel: str,
    number: int,
    channels: int,
    filters: int,
    height: int,
    width: int,
    padding: tuple[int, int],
    with_bias: bool,
    last: bool,
):
    # Some of these shapes the layer leaves to torch; the kernels are right for them all the same.
    padding = (max(padding[0], (4 - height) // 2), max(padding[1], (4 - width) // 2))
    forward, backward = KERNELS[kernel]
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
        output = forward(images, weight, bias, padding)
    torch.testing.assert_close(output, expected.detach(), atol=1e-11, rtol=0)
    upstream = draw(*expected.shape)
    with torch.no_grad():
        found = backward(images, weight, upstream, padding, (True, True, with_bias))
    for mine, theirs in zip(found, torch.autograd.grad(expected, inputs, upstream), strict=False):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("channels", "filters", "height", "width", "padding"),
    [
        (64, 48, 16, 16, 1),
        (41, 33, 17, 13, 1),
        (16, 10, 14, 14, 0),
        (20, 20, 7, 9, 2),
        (3, 64, 15, 11, 1),
        (1, 32, 14, 14, 0),
    ],
)
def test_float32_agrees_with_torch(
    channels: int, filters: int, height: int, width: int, padding: int
):
    torch.manual_seed(0)
    layer = nn.Conv2d(channels, filters, 3, padding=padding)
    images = torch.randn(20, channels, height, width)
    expected = gradients(copy.deepcopy(layer).double(), images.double())
    found = gradients(use_convolution(layer, "winograd"), images)
    assert type(layer) is WinogradConv2d
    assert_close(found, [tensor.float() for tensor in expected], 1e-5)


@pytest.mark.parametrize("channels", [2, 16])
@pytest.mark.parametrize("bias", [True, False])
def test_gradcheck(channels: int, bias: bool):
    torch.manual_seed(0)
    layer = WinogradConv2d(channels, 2, 3, padding=1, bias=bias, dtype=torch.float64)
    images = torch.randn(64, channels, 3, 4, dtype=torch.float64, requires_grad=True)
    inputs = (images, *layer.parameters())

    def compute(images: Tensor, *parameters: Tensor) -> Tensor:
        names = dict(layer.named_parameters())
        values = dict(zip(names, parameters, strict=True))
        for name, value in values.items():
            delattr(layer, name)
            setattr(layer, name, value)
        try:
            return layer(images)
        finally:
            for name, value in names.items():
                delattr(layer, name)
                setattr(layer, name, value)

    assert torch.autograd.gradcheck(compute, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(compute, inputs, fast_mode=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv2d(16, 8, 3, stride=2, padding=1),
        lambda: nn.Conv2d(16, 8, 3, dilation=2),
        lambda: nn.Conv2d(16, 8, 3, groups=2),
        lambda: nn.Conv2d(16, 8, 5, padding=2),
        lambda: nn.Conv2d(16, 8, 1),
        lambda: nn.Conv2d(16, 8, (3, 1)),
        lambda: nn.Conv2d(16, 8, 3, padding=1, padding_mode="circular"),
    ],
)
def test_other_layers_stay_torchs(make: Callable[[], nn.Conv2d]):
    layer = make()
    assert type(use_convolution(layer, "winograd")) is nn.Conv2d
    images = torch.randn(64, 16, 9, 9)
    expected = gradients(layer, images)
    layer.__class__ = WinogradConv2d  # even then
    assert_close(gradients(layer, images), expected, 0)


@pytest.mark.parametrize(
    "images",
    [
        torch.randn(16, 12, 12),  # without a batch
        torch.randn(1, 16, 8, 8),  # a few tiles only
        torch.randn(64, 16, 2, 2),  # mostly empty tiles
        torch.randn(0, 16, 8, 8),
    ],
    ids=lambda images: "x".join(map(str, images.shape)),
)
def test_other_inputs_go_to_torch(images: Tensor):
    layer = nn.Conv2d(16, 8, 3, padding=1)
    expected = layer(images)
    assert torch.equal(use_convolution(layer, "winograd")(images), expected)


def test_other_modes_go_to_torch():
    layer = use_convolution(nn.Conv2d(16, 8, 3, padding=1), "winograd")
    images = torch.randn(64, 16, 8, 8)
    plain = use_convolution(copy.deepcopy(layer), "torch")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer(images), plain(images))
    assert torch.equal(layer.bfloat16()(images.bfloat16()), plain.bfloat16()(images.bfloat16()))
    per_image = torch.func.vmap(plain.float())(images[:, None])
    torch.testing.assert_close(torch.func.vmap(layer.float())(images[:, None]), per_image)


@pytest.mark.parametrize("padding", ["same", "valid", (2, 0)])
def test_every_way_to_say_padding(padding: str | tuple[int, int]):
    layer = nn.Conv2d(16, 8, 3, padding=padding)
    images = torch.randn(16, 16, 9, 12)
    expected = gradients(layer, images)
    assert_close(gradients(use_convolution(layer, "winograd"), images), expected, 1e-5)


def test_wrong_channels_are_torchs_error():
    layer = use_convolution(nn.Conv2d(16, 8, 3), "winograd")
    with pytest.raises(RuntimeError, match="channels"):
        layer(torch.zeros(64, 17, 8, 8))


@pytest.fixture
def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, bias=False),
        nn.Conv2d(16, 16, 3, stride=2),
        nn.Flatten(),
        nn.LazyLinear(4),
    )


def test_only_the_suitable_layers_change_and_change_back(network: nn.Module):
    types = [type(module) for module in network.modules()]
    assert use_convolution(network, "winograd") is network
    swapped = [type(module) for module in network.modules()]
    assert [place for place, kind in enumerate(swapped) if kind is WinogradConv2d] == [1, 4]
    use_convolution(network, "torch")
    assert [type(module) for module in network.modules()] == types


def test_layers_of_another_class_are_left_alone():
    class Mine(nn.Conv2d):
        pass

    assert type(use_convolution(Mine(16, 16, 3), "winograd")) is Mine


def test_names_parameters_and_hooks_stay(network: nn.Module):
    network(torch.zeros(2, 3, 8, 8))
    before = {name: value.data_ptr() for name, value in network.state_dict().items()}
    parameters = list(network.parameters())
    seen: list[Tensor] = []
    network[0].register_forward_hook(lambda module, inputs, output: seen.append(output))  # pyright: ignore
    use_convolution(network, "winograd")
    assert {name: value.data_ptr() for name, value in network.state_dict().items()} == before
    assert all(a is b for a, b in zip(network.parameters(), parameters, strict=True))
    network(torch.zeros(16, 3, 8, 8))
    assert len(seen) == 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])  # noqa: S301
def test_copies_compute_the_same(network: nn.Module, duplicate: Callable[[nn.Module], nn.Module]):
    images = torch.randn(16, 3, 8, 8)
    network(images)
    network = use_convolution(network, "winograd").eval()
    twin = duplicate(network)
    assert isinstance(twin.get_submodule("3"), WinogradConv2d)
    assert torch.equal(twin(images), network(images))


def test_evaluation_without_gradients(network: nn.Module):
    images = torch.randn(16, 3, 8, 8)
    network(images)
    network.eval()
    expected = network(images)
    use_convolution(network, "winograd")
    with torch.no_grad():
        first = network(images)
    with torch.inference_mode():
        second = network(images)
    assert not first.requires_grad
    assert torch.equal(first, second)
    torch.testing.assert_close(first, expected.detach(), atol=1e-5, rtol=1e-5)


def test_a_batch_larger_than_what_is_computed_at_once():
    torch.manual_seed(0)
    layer = nn.Conv2d(16, 4, 3, padding=1)
    images = torch.randn(67, 16, 32, 32)  # two full chunks and a rest
    expected = gradients(copy.deepcopy(layer).double(), images.double())
    found = gradients(use_convolution(layer, "winograd"), images)
    assert_close(found, [tensor.float() for tensor in expected], 1e-5)


def test_training_after_inference():
    layer = WinogradConv2d(16, 8, 3)
    with torch.inference_mode():
        layer(torch.randn(16, 16, 10, 10))
    layer(torch.randn(16, 16, 10, 10)).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("frozen", ["weight", "bias", "images"])
def test_what_is_frozen_gets_no_gradient(frozen: str):
    for channels in (3, 16):
        layer = WinogradConv2d(channels, 8, 3, padding=1)
        images = torch.randn(16, channels, 8, 8, requires_grad=frozen != "images")
        if frozen != "images":
            layer.get_parameter(frozen).requires_grad_(False)
        layer(images).sum().backward()
        given_gradient = {
            "images": images.grad is not None,
            "weight": layer.weight.grad is not None,
            "bias": layer.get_parameter("bias").grad is not None,
        }
        assert given_gradient == {name: name != frozen for name in given_gradient}


def test_same_bytes_every_time():
    torch.manual_seed(0)
    layer = WinogradConv2d(32, 24, 3, padding=1)
    images = torch.randn(40, 32, 16, 16)
    assert all(
        torch.equal(a, b)
        for a, b in zip(gradients(layer, images), gradients(layer, images), strict=True)
    )


def test_outputs_are_channels_last_whatever_came():
    images = torch.randn(16, 16, 9, 9)
    layer = WinogradConv2d(16, 8, 3)
    for form in (torch.contiguous_format, torch.channels_last):
        assert layer(images.to(memory_format=form)).is_contiguous(memory_format=torch.channels_last)


def test_the_setting_is_checked():
    with pytest.raises(
        ValueError, match="convolution: expected one of torch, winograd, padded, got"
    ):
        use_convolution(nn.Identity(), "winnograd")


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("linux", "aarch64", "winograd"),
        ("linux", "x86_64", "torch"),
        ("darwin", "arm64", "torch"),
        ("win32", "AMD64", "torch"),
    ],
)
def test_the_default_is_the_processors(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, expected: str
):
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert default_convolution(torch.device("cpu")) == expected
    assert expected in CONVOLUTIONS


def test_layers_with_little_to_do_are_left_to_torch(monkeypatch: pytest.MonkeyPatch):
    layer = use_convolution(nn.Conv2d(16, 16, 3, padding=1), "winograd")
    images = torch.randn(64, 16, 8, 8, generator=torch.Generator().manual_seed(0))
    fast = layer(images)
    monkeypatch.undo()
    plain = layer(images)
    assert type(fast.grad_fn).__name__ == "_ConvolutionBackward"
    assert type(plain.grad_fn).__name__ == "ConvolutionBackward0"
    torch.testing.assert_close(fast, plain, atol=1e-4, rtol=1e-4)
