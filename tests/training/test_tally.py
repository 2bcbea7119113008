from __future__ import annotations

import torch

from labelproof.training.metrics import MEMORY, SEEN, Tally

CPU = torch.device("cpu")


def test_sums_are_read_by_name() -> None:
    tally = Tally(["base", "penalty"], 3, CPU)
    for step in range(3):
        tally.add(torch.tensor(1.0), torch.arange(8, dtype=torch.float64) * step)
    tally.correct.fill_(41)
    tally.held.copy_(torch.tensor([[1, 0, 4], [2, 0, 5]]))
    sums, correct, held_correct, held_predicted, diverged = tally.read().wait()
    assert (held_correct, held_predicted) == (5, [2, 0, 5])
    assert list(sums) == ["train_loss", "base", "penalty", *MEMORY, *SEEN]
    assert list(sums.values()) == [0, 3, 6, 9, 12, 15, 18, 21]
    assert (correct, diverged) == (41, -1)


def test_the_first_step_that_went_wrong_is_kept() -> None:
    for bad in (torch.nan, torch.inf, -torch.inf):
        tally = Tally([], 3, CPU)
        for value in (1.0, 2.0, bad, 3.0, torch.nan):
            tally.add(torch.tensor(value), torch.zeros(6, dtype=torch.float64))
        assert tally.read().wait().diverged == 2
        assert int(tally.count) == 5


def test_steps_are_counted_over_epochs_and_sums_are_not() -> None:
    tally = Tally([], 3, CPU)
    for _ in range(2):
        tally.start_epoch()
        tally.add(torch.tensor(1.0), torch.ones(6, dtype=torch.float64))
    assert tally.sums.tolist() == [1] * 6
    assert int(tally.count) == 2


def test_a_reading_is_of_its_moment() -> None:
    tally = Tally([], 3, CPU)
    tally.add(torch.tensor(1.0), torch.ones(6, dtype=torch.float64))
    reading = tally.read()
    tally.start_epoch()
    tally.correct.fill_(9)
    tally.add(torch.tensor(torch.nan), torch.ones(6, dtype=torch.float64))
    sums, correct, _, _, diverged = reading.wait()
    assert list(sums.values()) == [1] * 6
    assert (correct, diverged) == (0, -1)


def test_sums_of_many_small_numbers_are_exact_enough() -> None:
    tally = Tally([], 3, CPU)
    tally.sums.fill_(1e8)
    for _ in range(1000):
        tally.add(torch.tensor(0.0), torch.full((6,), 0.1, dtype=torch.float64))
    assert abs(float(tally.sums[0]) - 1e8 - 100) < 1e-4


def test_the_state_is_the_tensors_themselves() -> None:
    tally = Tally([], 3, CPU)
    for tensor in tally.state.values():
        tensor.fill_(5)
    assert tally.read().wait() == (dict.fromkeys(tally.names, 5), 5, 0, [0, 0, 0], 5)
