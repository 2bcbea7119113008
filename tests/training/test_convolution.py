from __future__ import annotations

import copy
import pickle
import platform
import sys

import pytest
import torch
from torch import nn

from labelproof.models.text import make_network
from labelproof.training.kernels.convolution import (
    CONVOLUTIONS,
    default_convolution,
    use_convolution,
)


def kinds(network: nn.Module) -> set[str]:
    return {type(module).__name__ for module in network.modules() if isinstance(module, nn.Conv2d)}


def network() -> nn.Module:
    made = make_network(
        "cnn4(width=12)",
        num_classes=5,
        input_shape=(3, 8, 8),
        generator=torch.Generator().manual_seed(0),
    )
    return made.eval()


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
def test_every_kernel_computes_the_same_and_can_be_undone(convolution: str) -> None:
    plain, other = network(), use_convolution(network(), convolution)
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
    assert kinds(use_convolution(other, "torch")) == {"Conv2d"}
    assert torch.equal(other(images), expected)


def test_one_choice_follows_another() -> None:
    changed = network()
    seen = []
    for convolution in ("winograd", "padded", "torch", "winograd"):
        seen.append(kinds(use_convolution(changed, convolution)))
    assert "PaddedConv2d" in seen[1]
    assert "WinogradConv2d" not in seen[1]
    assert seen[2] == {"Conv2d"}
    assert seen[3] == seen[0]


def test_layers_that_are_more_than_a_convolution_are_left_alone() -> None:
    class Special(nn.Conv2d):
        pass

    for convolution in CONVOLUTIONS:
        changed = use_convolution(nn.Sequential(Special(3, 5, 3, padding=1)), convolution)
        assert kinds(changed) == {"Special"}


def test_an_unknown_kernel_is_named() -> None:
    with pytest.raises(ValueError, match=r"convolution: .*'winogard'; did you mean 'winograd'"):
        use_convolution(network(), "winogard")


def test_the_default_follows_device_and_precision_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert default_convolution(cuda, "bf16") == "padded"
    assert default_convolution(cuda, "fp16") == "padded"
    assert default_convolution(cuda, "float32") == "torch"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert default_convolution(cpu) == "winograd"
    assert default_convolution(cpu, "bf16") == "torch"
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert default_convolution(cpu) == "torch"
    assert default_convolution(torch.device("mps")) == "torch"
