from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from labelproof.training.kernels.convolution import PaddedConv2d, pad_convolutions


@pytest.mark.parametrize(
    ("inward", "outward", "options"),
    [
        (3, 64, {"padding": 1}),
        (64, 196, {"padding": 1, "bias": False}),
        (1, 1, {"stride": 2}),
        (9, 8, {"dilation": 2, "padding": "same"}),
        (5, 7, {"padding": (0, 2), "stride": (2, 1)}),
        (8, 3, {"padding": "valid"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_outputs_and_gradients_are_those_of_the_plain_layer(
    inward: int, outward: int, options: dict[str, Any], layout: torch.memory_format
) -> None:
    draws = torch.Generator().manual_seed(0)
    plain = nn.Conv2d(inward, outward, 3, **options)
    padded = pad_convolutions(copy.deepcopy(plain))
    assert type(padded) is PaddedConv2d
    outcomes = []
    for layer in (plain, padded):
        images = torch.randn(2, inward, 9, 8, generator=draws.manual_seed(1))
        images = images.to(memory_format=layout).requires_grad_()
        outputs = layer(images)
        weight = torch.randn(outputs.shape, generator=draws.manual_seed(2))
        gradients = torch.autograd.grad((outputs * weight).sum(), [images, *layer.parameters()])
        outcomes.append([outputs, *gradients])
    for expected, found in zip(*outcomes, strict=True):
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_calls_of_the_device_have_multiples_of_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    from labelproof.training.kernels import convolution

    shapes = []
    convolve = convolution.F.conv2d

    def told(input: torch.Tensor, weight: torch.Tensor, *rest: Any) -> torch.Tensor:
        shapes.append((input.shape[1], *weight.shape[:2]))
        return convolve(input, weight, *rest)

    monkeypatch.setattr(convolution.F, "conv2d", told)
    pad_convolutions(nn.Sequential(nn.Conv2d(3, 12, 3), nn.Conv2d(12, 196, 1)))(
        torch.zeros(1, 3, 5, 5)
    )
    assert shapes == [(8, 16, 8), (16, 200, 16)]


def test_gradients_come_with_channels_last(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[bool] = []

    def look(gradient: torch.Tensor) -> None:
        orders.append(gradient.is_contiguous(memory_format=torch.channels_last))

    plain = torch.nn.functional.conv2d

    def watched(*arguments: Any) -> torch.Tensor:
        result = plain(*arguments)
        result.register_hook(look)
        return result

    monkeypatch.setattr(torch.nn.functional, "conv2d", watched)
    layers = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
    network = pad_convolutions(layers)
    images = torch.rand(2, 8, 4, 4).contiguous(memory_format=torch.channels_last)
    result = network(images)
    result.backward(torch.rand_like(result))
    assert orders == [True]


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(8, 16, 3),
        nn.Conv2d(6, 6, 3, groups=3),
        nn.Conv2d(3, 5, 3, padding=1, padding_mode="reflect"),
        nn.ConvTranspose2d(3, 5, 3),
        nn.Conv1d(3, 5, 3),
    ],
    ids=str,
)
def test_layers_it_does_not_suit_are_left_alone(layer: nn.Module) -> None:
    kind = type(layer)
    pad_convolutions(nn.Sequential(layer))
    assert type(layer) is kind
