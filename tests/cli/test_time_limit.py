from __future__ import annotations

from labelproof.cli.bench import TimeLimit
from labelproof.training.configuration import Configuration
from labelproof.training.runner import Event, Job
from labelproof.training.stop_request import StopRequest


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def job(epochs: int, data: str = "mnist", seed: int = 1) -> Job:
    return Job(Configuration(data, epochs=epochs, seed=seed))


def train(limit: TimeLimit, clock: Clock, given: Job, *, seconds: float) -> None:
    for _ in range(given.configuration.epochs):
        clock.now += seconds
        limit.see(Event(given, "epoch", {}))


def test_without_a_limit_all_come_in_their_order() -> None:
    jobs = [job(9), job(1), job(5)]
    limit = TimeLimit(StopRequest())
    assert list(limit.give(jobs)) == jobs


def test_runs_are_begun_until_the_next_would_not_be_finished() -> None:
    clock = Clock()
    limit = TimeLimit(StopRequest(100, clock=clock))
    jobs = [job(10, seed=seed) for seed in range(9)]
    done = []
    for each in limit.give(jobs):
        train(limit, clock, each, seconds=2)
        done.append(each)
    assert done == jobs[:4]  # the fifth would end at second 100 sharp, with nothing to spare
    assert clock.now == 80


def test_a_shorter_run_is_preferred_to_none() -> None:
    clock = Clock()
    limit = TimeLimit(StopRequest(50, clock=clock))
    first, long, short = job(10), job(20), job(2)
    given = limit.give([first, long, short])
    assert next(given) == first
    train(limit, clock, first, seconds=4)
    assert list(given) == [short]


def test_of_another_kind_nothing_is_known_so_one_is_tried() -> None:
    clock = Clock()
    limit = TimeLimit(StopRequest(50, clock=clock))
    first, other = job(10), job(1000, "cifar10")
    given = limit.give([first, job(10, seed=2), other])
    train(limit, clock, next(given), seconds=4)
    assert next(given) == other
    clock.now = 50
    assert list(given) == []


def test_a_pace_is_between_epochs_of_one_run_not_of_several_at_once() -> None:
    clock = Clock()
    limit = TimeLimit(StopRequest(100, clock=clock))
    one, two = job(10, seed=1), job(10, seed=2)
    for now in (0.0, 5.0):
        for shift, each in enumerate((one, two)):
            clock.now = now + shift
            limit.see(Event(each, "epoch", {}))
    # Five seconds an epoch, not one.
    assert list(limit.give([job(50)])) == []
    assert list(limit.give([job(10)])) == [job(10)]


def test_two_epochs_that_are_told_together_do_not_make_a_run_look_short() -> None:
    clock = Clock()
    limit = TimeLimit(StopRequest(201, clock=clock))
    first = job(50)
    given = limit.give([first, job(50, seed=2)])
    assert next(given) == first
    for _ in range(49):
        clock.now += 3
        limit.see(Event(first, "epoch", {}))
    limit.see(Event(first, "epoch", {}))
    assert list(given) == []
