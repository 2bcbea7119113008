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
from labelproof.training.metrics import Backlog, Tally
from labelproof.training.step import judge
from labelproof.training.trainer import Trainer

CPU = torch.device("cpu")


def test_the_first_step_that_went_wrong_is_kept() -> None:
    for bad in (torch.nan, torch.inf, -torch.inf):
        tally = Tally([], 3, CPU)
        for value in (1.0, 2.0, bad, 3.0, torch.nan):
            tally.add(torch.tensor(value), torch.zeros(6, dtype=torch.float64))
        assert tally.read().wait().diverged == 2
        assert int(tally.count) == 5


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
