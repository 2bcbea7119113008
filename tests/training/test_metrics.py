"""What is summed up over an epoch; steps that are counted later come to the same sums."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from small_runs import small, small_run, train_epoch

from labelproof import parse_loss
from labelproof.training.algorithms import Supervised
from labelproof.training.algorithms.base import Batch
from labelproof.training.batches import Fetched
from labelproof.training.metrics import MEMORY, SEEN, Backlog, Tally
from labelproof.training.step import judge
from labelproof.training.trainer import Trainer

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


CLASSES, BATCH = 5, 11


def algorithm_of(loss: str) -> Supervised:
    return Supervised(parse_loss(loss), num_classes=CLASSES, num_examples=100)


def tally_of(algorithm: Supervised, *, places: int | None = None) -> Tally:
    two = torch.arange(2)
    parts = algorithm.objectives(Batch((torch.zeros(2, CLASSES),), two, two)).parts
    tally = Tally(list(parts), CLASSES, CPU)
    if places is not None:
        backlog = Backlog(tally, algorithm, batch_size=BATCH, num_classes=CLASSES)
        backlog.places = places
        tally.backlog = backlog
    return tally


def steps(count: int) -> list[tuple[torch.Tensor, Fetched]]:
    """Logits and labels, wrong ones among them; the last step is smaller."""
    draws = torch.Generator().manual_seed(1)
    found = []
    for step in range(count):
        size = BATCH if step + 1 < count else 4
        logits = 9 * torch.randn(size, CLASSES, generator=draws)
        given, clean = torch.randint(CLASSES, (2, size), generator=draws)
        found.append((logits, Fetched(torch.zeros(size), torch.arange(size), given, clean)))
    return found


def count(algorithm: Supervised, tally: Tally, reads: Iterable[int] = ()) -> dict[str, float]:
    assert tally.backlog is not None
    for number, (logits, fetched) in enumerate(steps(150)):
        batch = Batch((logits,), fetched.target, fetched.indices)
        tally.backlog.add(algorithm.losses(batch)[0], logits, fetched)
        if number in reads:
            assert int(tally.state["count"]) == number + 1
    return tally.read().wait().sums


@pytest.mark.parametrize("loss", ["ce", "ce+sr", "nce+mae", "gce(q=0.7)+sr(clamp=0.01)"])
def test_the_sums_are_those_of_every_step_alone(loss: str) -> None:
    algorithm = algorithm_of(loss)
    at_once = tally_of(algorithm)
    for logits, fetched in steps(150):
        judge(algorithm, at_once, (logits,), fetched)
    expected = at_once.read().wait().sums
    found = count(algorithm, tally_of(algorithm, places=64))
    assert list(found) == list(expected)
    for name, value in found.items():
        assert value == pytest.approx(expected[name], rel=1e-5), name


@pytest.mark.parametrize("loss", ["ce", "gce(q=0.7)+sr"])
def test_when_it_is_counted_changes_no_bit(loss: str) -> None:
    algorithm = algorithm_of(loss)
    whole = count(algorithm, tally_of(algorithm, places=64))
    for reads in ([0], [37], [62, 63, 64], range(0, 150, 7), range(150)):
        assert count(algorithm, tally_of(algorithm, places=64), reads) == whole


def test_a_run_goes_on_where_its_tally_was_kept() -> None:
    algorithm = algorithm_of("ce+sr")
    whole = count(algorithm, tally_of(algorithm, places=64))
    first, second = tally_of(algorithm, places=64), tally_of(algorithm, places=64)
    for number, (logits, fetched) in enumerate(steps(150)):
        tally = first if number < 100 else second
        if number == 100:
            for name, tensor in second.state.items():
                tensor.copy_(first.state[name])
        assert tally.backlog is not None
        batch = Batch((logits,), fetched.target, fetched.indices)
        tally.backlog.add(algorithm.losses(batch)[0], logits, fetched)
    assert second.read().wait().sums == whole


def test_a_loss_that_is_no_number_is_known_at_once() -> None:
    algorithm = algorithm_of("ce")
    tally = tally_of(algorithm, places=64)
    assert tally.backlog is not None
    for step, (logits, fetched) in enumerate(steps(6)):
        value = torch.tensor(torch.nan if step in (3, 4) else 1.0)
        tally.backlog.add(value, logits, fetched)
        assert int(tally.diverged) == (3 if step >= 3 else -1)
    counted = tally.read().wait()
    assert counted.diverged == 3
    assert counted.sums["clean_seen"] + counted.sums["wrong_seen"] == 5 * BATCH + 4


def test_a_new_epoch_forgets_what_was_waiting() -> None:
    algorithm = algorithm_of("ce")
    tally = tally_of(algorithm, places=64)
    count(algorithm, tally)
    logits, fetched = steps(1)[0]
    assert tally.backlog is not None
    tally.backlog.add(torch.tensor(1.0), logits, fetched)
    tally.start_epoch()
    assert not any(tally.read().wait().sums.values())
    assert int(tally.count) == 151


def test_many_classes_wait_for_fewer_steps() -> None:
    tally = tally_of(algorithm_of("ce"))
    algorithm = algorithm_of("ce")
    few = Backlog(tally, algorithm, batch_size=200, num_classes=10)
    many = Backlog(tally, algorithm, batch_size=512, num_classes=1000)
    most = Backlog(tally, algorithm, batch_size=1 << 12, num_classes=1 << 12)
    assert (few.places, many.places, most.places) == (64, 2, 1)


def waits(run: Trainer) -> bool:
    return run.tally.backlog is not None


def test_runs_that_leave_counting_for_later() -> None:
    assert waits(small_run(small(loss="ce+sr")))
    assert waits(small_run(small(loss="nl", network="cnn4(width=4)")))
    assert not waits(small_run(small(algorithm="co-teaching")))
    assert not waits(small_run(small(loss="ce+sr(smoothing=0.1)")))


@pytest.mark.parametrize("network", ["mlp(hidden=16,depth=1)", "cnn4(width=4)"])
@pytest.mark.parametrize("loss", ["ce+sr", "gce(q=0.7)"])
def test_a_run_reports_what_it_would_at_once(loss: str, network: str) -> None:
    later, at_once = (small_run(small(loss=loss, network=network)) for _ in range(2))
    at_once.tally.backlog = None
    at_once.plain.direct, at_once.plain.judge = None, judge
    for _ in range(2):
        found, expected = train_epoch(later), train_epoch(at_once)
        assert found == pytest.approx(expected, rel=1e-4, abs=0.6)
        assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=1e-4)
