"""Co-teaching against a plain loop, its ties, and its estimate of the noise."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import small, train

from labelproof import CrossEntropy, parse_loss
from labelproof.data import load_digits
from labelproof.training import Job, choose_examples
from labelproof.training.algorithms import Batch, CoTeaching, estimate_noise_rate, smallest


def co_teaching(loss: str = "ce", *, examples: int = 200, **options: Any) -> CoTeaching:
    return CoTeaching(parse_loss(loss), num_classes=6, num_examples=examples, **options)


def random_batch(seed: int = 0, size: int = 32) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    first, second = (torch.randn(size, 6, generator=generator).requires_grad_() for _ in range(2))
    target = torch.randint(6, (size,), generator=generator)
    return Batch((first, second), target, torch.arange(size))


def test_it_is_the_plain_loop():
    losses, rates, sizes = ("ce", "gce+sr"), (0.0, 0.2, 0.45, 0.9, 1.0), (1, 7, 129)
    for loss, rate, size in itertools.product(losses, rates, sizes):
        algorithm = co_teaching(loss, noise_rate=rate, ramp_epochs=0)
        batch = random_batch(size=size)
        found = algorithm.objectives(batch)
        kept = max(1, math.floor((1 - rate) * size + 1e-4))
        values = [algorithm.loss.per_example(each, batch.target) for each in batch.logits]
        for own, peer, value in ((0, 1, found.losses[0]), (1, 0, found.losses[1])):
            chosen = np.argsort(values[peer].detach().numpy(), kind="stable")[:kept]
            torch.testing.assert_close(value, values[own][torch.from_numpy(chosen)].mean())
        assert found.parts["kept"] == pytest.approx(kept / size)
        assert found.parts["first_loss"] == found.losses[0]
        assert found.parts["second_loss"] == found.losses[1]
    # Rounding drops no example too many.
    for size, percent in itertools.product([1, 3, 60, 1000], range(101)):
        marks = smallest(torch.arange(size) * 1.0, 1 - torch.tensor(percent / 100))
        assert int(marks.sum()) == max(1, (100 - percent) * size // 100)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    costs=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=40),
    share=st.floats(0, 1),
)
def test_the_cheapest_are_kept_and_ties_go_to_the_first(costs: list[float], share: float):
    marks = smallest(torch.tensor(costs), torch.tensor(share)).numpy()
    count = max(1, math.floor(np.float32(share) * len(costs) * (1 + 1e-6)))
    expected = sorted(range(len(costs)), key=lambda place: (costs[place], place))[:count]
    assert sorted(np.flatnonzero(marks)) == sorted(expected)


def test_losses_are_remembered_where_they_belong():
    algorithm = co_teaching(examples=50)
    batch = random_batch()
    index = torch.randperm(50, generator=torch.Generator().manual_seed(1))[:32]
    algorithm.objectives(Batch(batch.logits, batch.target, index))
    seen = algorithm.example_losses
    expected = CrossEntropy().per_example(batch.logits[0].detach(), batch.target)
    torch.testing.assert_close(seen[index], expected)
    assert int(seen.isnan().sum()) == 18


def test_estimates_are_averaged_from_the_second_epoch_to_the_end_of_the_ramp():
    algorithm = co_teaching(examples=100, ramp_epochs=4)
    rates = [0.5, 0.1, 0.3, 0.2, 0.7, 0.7]
    expected = [0, 0.1, 0.2, 0.2, 0.2, 0.2]
    for epoch, (rate, mean) in enumerate(zip(rates, expected, strict=True)):
        algorithm.set_epoch(epoch)
        high = torch.arange(100) < 100 * rate
        algorithm.example_losses.copy_(torch.where(high, 5.0, 0.1))
        algorithm.after_epoch(epoch)
        assert float(algorithm.noise_rate) == pytest.approx(mean, abs=1e-4)
        if epoch < 2:
            assert algorithm.forget_rate == 0
    algorithm.set_epoch(4)
    assert float(algorithm.forget_rate) == pytest.approx(0.2, abs=1e-4)


def test_two_heaps_are_told_apart_and_nothing_can_be_said_of_equal_losses():
    draw = np.random.Generator(np.random.PCG64(0))
    for rate in (0.1, 0.3, 0.6):
        wrong = draw.random(4000) < rate
        losses = np.where(wrong, draw.normal(3, 0.5, 4000), draw.normal(0.5, 0.2, 4000))
        assert estimate_noise_rate(losses) == pytest.approx(wrong.mean(), abs=0.02)
        losses[::10] = np.nan
        assert estimate_noise_rate(losses) == pytest.approx(rate, abs=0.03)
    for equal in ([], [1.0], [2.0] * 9, [math.nan] * 3, [math.inf, 1.0]):
        assert estimate_noise_rate(equal) == 0


def learn(algorithm: str, *, noise: str, epochs: int, **settings: Any) -> dict[str, list[float]]:
    """The curves of a run on digits."""
    how = {"loss": "ce", "optimizer": "adamw", "batch_size": 128, "schedule": "constant"}
    how |= {"network": "mlp(hidden=256,depth=1)", "weight_decay": 0, **settings}
    job = Job(small(algorithm=algorithm, noise=noise, epochs=epochs, **how))
    events = train(job, load=lambda chosen: choose_examples(chosen, load_digits()))
    return events[-1].value.curve


@pytest.mark.parametrize(("noise", "low", "high"), [("symmetric:0.4", 0.3, 0.5), ("none", 0, 0.15)])
def test_the_noise_rate_is_found(noise: str, low: float, high: float):
    algorithm = "co-teaching(rate=estimate,ramp=6)"
    curve = learn(algorithm, noise=noise, epochs=7, learning_rate=4e-3)
    assert low <= 1 - curve["kept"][-1] <= high


def test_co_teaching_beats_plain_cross_entropy():
    # Long and fast enough for a network to learn wrong labels by heart where nothing stops it.
    robust, misled = (
        learn(each, noise="symmetric:0.4", epochs=16, learning_rate=1e-2)["test_accuracy"][-1]
        for each in ("co-teaching(rate=0.4,ramp=5)", "supervised")
    )
    assert robust > misled + 3
