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
