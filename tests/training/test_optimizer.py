from typing import Any

import pytest
import torch
import torch._dynamo.testing
from small_runs import reference_optimizer, small
from torch import Tensor, nn

from labelproof.training.optimizer import FlatParameters, Optimizer


class Odd(nn.Module):
    """Sizes that leave gaps, a 4-d weight in either memory format, and a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 5, 3)
        self.second = nn.Conv2d(5, 7, (1, 3), bias=False)
        self.pointwise = nn.Conv2d(4, 3, 1)  # contiguous in both memory formats
        self.head = nn.Linear(7, 3)
        self.scalar = nn.Parameter(torch.tensor(0.5))
        for index, parameter in enumerate(self.parameters()):
            noise = torch.Generator().manual_seed(index)
            parameter.data = torch.randn(parameter.shape, generator=noise)
        self.first.to(memory_format=torch.channels_last)


def gradients(network: nn.Module, step: int, size: float = 1.0) -> dict[str, Tensor]:
    draws = torch.Generator().manual_seed(1000 + step)
    return {
        name: size * torch.randn(parameter.shape, generator=draws)
        for name, parameter in network.named_parameters()
    }


def update(optimizer: Optimizer, network: nn.Module, given: dict[str, Tensor]) -> None:
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    optimizer.update([given[names[id(parameter)]] for parameter in optimizer.parameters])


@pytest.mark.parametrize(
    "rule",
    [
        {"momentum": 0.0, "weight_decay": 0.1, "clip_norm": 2.0},
        {"momentum": 0.9, "weight_decay": 0.1, "clip_norm": 1e6},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "clip_norm": 2.0},
        {"momentum": 0.9, "weight_decay": 0.0, "clip_norm": 0.0},
        {"optimizer": "adamw", "weight_decay": 0.1, "clip_norm": 2.0},
        {"optimizer": "adamw", "momentum": 0.0, "weight_decay": 0.0, "clip_norm": 0.0},
    ],
    ids=str,
)
def test_twenty_steps_are_torchs(rule: dict[str, Any]) -> None:
    configuration = small(learning_rate=0.05, **rule)
    mine, plain, theirs = Odd(), Odd(), Odd()
    optimizer, by_hand = Optimizer(configuration, mine), Optimizer(configuration, plain)
    assert optimizer._fused == (rule.get("optimizer") == "adamw")
    by_hand._fused = False  # the rule of compiled steps, and of a GPU
    reference = reference_optimizer(configuration, theirs)
    for step in range(20):
        rate = 0.05 * 0.9**step
        reference.param_groups[0]["lr"] = rate
        # From far below the norm to clip at to far above it.
        given = gradients(mine, step, size=2.0 ** (step - 10))
        for each, network in ((optimizer, mine), (by_hand, plain)):
            each.set_rate(rate)
            update(each, network, given)
        for name, parameter in theirs.named_parameters():
            parameter.grad = given[name].clone()
        if rule["clip_norm"]:
            nn.utils.clip_grad_norm_(theirs.parameters(), rule["clip_norm"])
        reference.step()
    for name, expected in theirs.state_dict().items():
        tolerance = 1e-6 * max(float(expected.abs().max()), 1)
        for network in (mine, plain):
            found = network.state_dict()[name]
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=tolerance)
    for name, tensor in optimizer.state.items():
        torch.testing.assert_close(tensor, by_hand.state[name], rtol=1e-6, atol=1e-6)


def test_parameters_are_views_with_their_names_shapes_strides_and_values() -> None:
    before, network = Odd(), Odd()
    flat = FlatParameters(network)
    assert list(network.state_dict()) == list(before.state_dict())
    for name, parameter in network.named_parameters():
        old = before.get_parameter(name)
        assert torch.equal(parameter, old)
        assert parameter.shape == old.shape
        for layout in (torch.contiguous_format, torch.channels_last):
            if old.ndim == 4:
                same = old.is_contiguous(memory_format=layout)
                assert parameter.is_contiguous(memory_format=layout) == same
        assert parameter.untyped_storage().data_ptr() == flat.values.untyped_storage().data_ptr()
        assert parameter.data_ptr() % 16 == flat.values.data_ptr() % 16
    count = sum(parameter.numel() for parameter in network.parameters())
    assert count <= len(flat.values) < count + 4 * len(flat.parameters)


def test_frozen_parameters_stay_and_other_networks_are_refused() -> None:
    network = Odd()
    network.first.requires_grad_(False)
    frozen = network.first.weight.clone()
    optimizer = Optimizer(small(weight_decay=0.5), network)
    assert not any(parameter is network.first.weight for parameter in optimizer.parameters)
    update(optimizer, network, gradients(network, 0))
    assert torch.equal(network.first.weight, frozen)
    assert not torch.equal(network.head.weight, Odd().head.weight)
    # Networks that cannot be trained so are refused.
    halves, frozen = nn.Linear(2, 2).bfloat16(), nn.Linear(2, 2).requires_grad_(False)
    for network, found in ((halves, "bfloat16"), (nn.ReLU(), "none"), (frozen, "none")):
        with pytest.raises(ValueError, match=f"network: expected float32 parameters .*{found}"):
            FlatParameters(network)


@pytest.mark.parametrize(("rule", "bad"), [("sgd", torch.inf), ("adamw", torch.nan)])
def test_a_step_that_overflows_is_left_out_and_the_scale_halves(rule: str, bad: float) -> None:
    configuration = small(optimizer=rule, clip_norm=0.0 if rule == "sgd" else 2.0)
    network, alone = Odd(), Odd()
    scaled = Optimizer(configuration, network, scaled=True)
    plain = Optimizer(configuration, alone)
    for step in range(6):
        given = gradients(network, step)
        multiplied = {name: each * scaled.scale for name, each in given.items()}
        if step in (2, 3):
            before = {name: tensor.clone() for name, tensor in scaled.state.items()}
            weights = scaled.flat.values.clone()
            multiplied["head.weight"][1, 2] = bad
            update(scaled, network, multiplied)
            assert torch.equal(scaled.flat.values, weights)
            assert scaled.scale == before.pop("scale") / 2
            assert scaled.steady == 0
            before.pop("steady")
            for name, tensor in before.items():
                assert torch.equal(scaled.state[name], tensor)
            continue
        update(scaled, network, multiplied)
        update(plain, alone, given)
    assert scaled.scale == Optimizer._FIRST_SCALE / 4
    # The scale is a power of two, so that it takes nothing from a gradient.
    assert torch.equal(scaled.flat.values, plain.flat.values)


def test_the_scale_grows_after_many_sound_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Optimizer, "_GROWS_AFTER", 3)
    network = Odd()
    optimizer = Optimizer(small(), network, scaled=True)
    scales = []
    for step in range(9):
        given = gradients(network, step)
        if step == 4:
            given["scalar"] = torch.tensor(torch.inf)
        update(optimizer, network, given)
        scales.append(float(optimizer.scale) / Optimizer._FIRST_SCALE)
    # Doubled after three; an overflow starts the count anew.
    assert scales == [1, 1, 2, 2, 1, 1, 1, 2, 2]
