from __future__ import annotations

from typing import Any

import pytest
import torch
from small_runs import CPU, small, small_digits, small_run, train_epoch
from torch import Tensor, nn

from labelproof import CrossEntropy
from labelproof.training.algorithms import Batch, CoTeaching, Supervised
from labelproof.training.batches import Fetched
from labelproof.training.metrics import Tally
from labelproof.training.step import Average, judge
from labelproof.training.trainer import Trainer


def test_memory_is_counted_as_it_is_defined() -> None:
    predicted = torch.tensor([0, 1, 2, 0, 1, 2, 2])
    given = torch.tensor([0, 1, 0, 1, 1, 0, 2])
    clean = torch.tensor([0, 2, 0, 0, 1, 2, 1])
    logits = torch.eye(3)[predicted] * 3
    tally = Tally(["sparse_rate"], 3, torch.device("cpu"))
    algorithm = Supervised(CrossEntropy(), num_classes=3, num_examples=7)
    fetched = Fetched(torch.zeros(7), torch.arange(7), given, clean)
    total = judge(algorithm, tally, (logits,), fetched)
    sums = tally.read().wait().sums
    rows = list(zip(predicted.tolist(), given.tolist(), clean.tolist(), strict=True))
    assert sums["clean_fitted"] == sum(p == g == c for p, g, c in rows)
    assert sums["wrong_fitted"] == sum(p == g != c for p, g, c in rows)
    assert sums["wrong_corrected"] == sum(p == c != g for p, g, c in rows)
    assert sums["train_loss"] == pytest.approx(7 * float(total))


def test_two_networks_cost_their_sum_and_log_their_mean() -> None:
    draws = torch.Generator().manual_seed(0)
    logits = tuple(torch.randn(8, 3, generator=draws) for _ in range(2))
    target = torch.arange(8) % 3
    tally = Tally(["kept", "first_loss", "second_loss"], 3, torch.device("cpu"))
    algorithm = CoTeaching(CrossEntropy(), num_classes=3, num_examples=8, noise_rate=0.0)
    total = judge(
        algorithm, tally, logits, Fetched(torch.zeros(8), torch.arange(8), target, target)
    )
    losses = algorithm.objectives(Batch(logits, target, torch.arange(8))).losses
    torch.testing.assert_close(total, losses[0] + losses[1])
    assert tally.read().wait().sums["train_loss"] == pytest.approx(8 * float(total) / 2)


def test_an_average_follows_by_its_decay() -> None:
    mine, theirs = [torch.zeros(3), torch.ones(2)], [torch.ones(3), torch.zeros(2)]
    average = Average(mine, theirs, 0.9)
    for step in range(1, 5):
        average.update()
        torch.testing.assert_close(mine[0], torch.full((3,), 1 - 0.9**step))
        torch.testing.assert_close(mine[1], torch.full((2,), 0.9**step))
    assert torch.equal(theirs[0], torch.ones(3))


@pytest.mark.parametrize("decay", [0.5, 0.99])
@pytest.mark.parametrize("network", ["cnn4(width=4)", "mlp(hidden=16,depth=1,batch_norm=true)"])
def test_the_average_of_a_run_is_the_moving_average_of_its_weights(
    decay: float, network: str
) -> None:
    run = small_run(small(average=decay, network=network))
    expected = {name: each.clone() for name, each in run.networks[0].state_dict().items()}
    assert run.average is not None
    for name, tensor in run.average.state_dict().items():
        assert torch.equal(tensor, expected[name])
    for _ in range(2):
        run.begin()
        while True:
            last = run.advance()
            for name, tensor in run.networks[0].state_dict().items():
                expected[name] = decay * expected[name] + (1 - decay) * tensor
            if last:
                break
        run.collect(run.end())
    assert run.evaluated is run.average
    for name, tensor in run.average.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6)
        assert not torch.equal(tensor, run.networks[0].state_dict()[name])


def test_what_is_kept_of_an_averaged_run_is_the_average() -> None:
    run = small_run(small(average=0.5))
    train_epoch(run)
    checkpoint = run.checkpoint()
    assert run.average is not None
    for name, tensor in run.average.state_dict().items():
        assert torch.equal(checkpoint.weights[name], tensor)
        assert torch.equal(checkpoint.state[f"network0.{name}"], run.networks[0].state_dict()[name])


def distance(first: Trainer, second: Trainer, index: int = 0) -> float:
    """Of two runs' weights, over how far the first one's moved."""
    pairs = zip(
        first.networks[index].parameters(), second.networks[index].parameters(), strict=True
    )
    return float(torch.stack([(a - b).detach().abs().max() for a, b in pairs]).max())


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_sixteen_bits_are_close_and_the_weights_stay_float32(precision: str) -> None:
    exact, short = small_run(small(precision="float32")), small_run(small(precision=precision))
    expected, found = train_epoch(exact), train_epoch(short)
    assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=0.01)
    assert found["test_accuracy"] == pytest.approx(expected["test_accuracy"], abs=10)
    assert all(parameter.dtype == torch.float32 for parameter in short.networks[0].parameters())
    assert 0 < distance(exact, short) < 0.05


def test_each_network_of_a_pair_has_a_scale_of_its_own() -> None:
    # After a step in which only the second network's gradients overflowed. A scale keeps small
    # gradients from vanishing and must not be felt otherwise.
    changes: dict[str, Any] = {"algorithm": "co-teaching", "precision": "fp16", "clip_norm": 0}
    plain, uneven = small_run(small(**changes)), small_run(small(**changes))
    scale = uneven.optimizers[1].scale
    assert scale is not None
    scale /= 2
    for run in (plain, uneven):
        run.begin()
        run.advance()
    assert distance(plain, uneven, 0) < 1e-4
    assert distance(plain, uneven, 1) < 1e-4


class Deaf(nn.Module):
    """Has a parameter that no gradient reaches."""

    def __init__(self, num_classes: int):
        super().__init__()
        self.head = nn.Linear(64, num_classes)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(images.flatten(1))


def test_a_parameter_that_is_not_used_stays_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("labelproof.training.trainer.make_network", lambda *_, **__: Deaf(10))
    run = small_run(small(weight_decay=0), CPU, small_digits())
    train_epoch(run)
    network = run.networks[0]
    assert isinstance(network, Deaf)
    assert torch.equal(network.unused, torch.ones(3))
