"""What the engine makes of the streams of its tasks, whatever becomes of them, on a made-up Ray."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from made_ray import MadeRay, RayTaskError, TaskCancelledError, WorkerCrashedError
from rich.console import Console
from small_runs import kinds, load_small, small

from labelproof.experiments import ray_engine
from labelproof.experiments.engines import LocalEngine
from labelproof.experiments.ray_cluster import runs_at_once
from labelproof.experiments.ray_engine import RayEngine, WorkerLostError
from labelproof.training import Event, Job, StopRequest
from labelproof.training.execution import choose_execution
from labelproof.training.record import RunRecord
from labelproof.verbs.progress import RunDisplay

ENDINGS = {"finished", "failed", "stopped"}
JOB = Job(small(epochs=1))
RECORD = RunRecord(JOB.configuration.name, JOB.configuration.as_values(), 0.0, {}, 1.0, {})
BEGUN = [("started", 0), ("epoch", {"epoch": 0})]
FINISHED = [*BEGUN, ("finished", RECORD)]

Use = Callable[[MadeRay], RayEngine]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """An engine that finds itself connected to a made-up Ray; none has to be installed."""

    def engine(ray: MadeRay) -> RayEngine:
        monkeypatch.setattr(ray_engine, "require_ray", lambda: None)
        monkeypatch.setattr(ray_engine, "connected", lambda _: contextlib.nullcontext(ray))
        return RayEngine(retries=1)

    return engine


class Wish(StopRequest):
    """A wish to stop that is there when someone sets it."""

    there = False

    @property
    def wanted(self) -> bool:
        return self.there


def follow(engine: RayEngine, *, stop_at: str | None = None) -> list[Event]:
    """All events of one job, shown as the bench shows them: an end without a beginning raises."""
    wish, events = Wish(), []
    with RunDisplay(Console(quiet=True), runs=2, epochs=2) as display:
        for event in engine.train([JOB], load=load_small, stop=wish):
            display.show(event)
            events.append(event)
            wish.there |= event.kind == stop_at
    return events


def lost() -> WorkerCrashedError:
    return WorkerCrashedError("the worker died")


def raised() -> RayTaskError:
    return RayTaskError(ValueError("too late"))


@pytest.mark.parametrize("after", [[lost()], [raised()], [TaskCancelledError()], [("stopped", 0)]])
@pytest.mark.parametrize("ending", [("finished", RECORD), ("failed", ValueError("diverged"))])
def test_what_comes_after_the_end_of_a_run_is_nothing(
    ending: Any, after: list[Any], use: Use
) -> None:
    ray = MadeRay([[*BEGUN, ending, *after], FINISHED])
    assert kinds(follow(use(ray))) == ["started", "epoch", ending[0]]
    assert ray.begun == 1


@pytest.mark.parametrize(
    "rest", [[("finished", RECORD)], [("finished", RECORD), lost()], [("stopped", (1, 0))], []]
)
@pytest.mark.parametrize("stop_at", ["started", "epoch"])
def test_a_run_that_is_stopped_ends_once(stop_at: str, rest: list[Any], use: Use) -> None:
    events = follow(use(MadeRay([[*BEGUN, *rest]])), stop_at=stop_at)
    expected = rest[0][0] if rest else "stopped"
    assert kinds(events) == ["started", "epoch", expected]


def test_a_run_that_ends_as_all_are_stopped_was_not_stopped(use: Use) -> None:
    events = follow(use(MadeRay([FINISHED])), stop_at="finished")
    assert kinds(events) == ["started", "epoch", "finished"]


def test_a_worker_that_is_lost_before_the_end_is_still_replaced(use: Use) -> None:
    ray = MadeRay([[*BEGUN, lost()], FINISHED])
    assert kinds(follow(use(ray))) == ["started", "epoch", "notice", "finished"]
    assert ray.begun == 2


def test_a_run_that_no_worker_begins_fails_once(use: Use) -> None:
    events = follow(use(MadeRay([[lost()], [lost()]])))
    assert kinds(events) == ["notice", "started", "failed"]
    assert isinstance(events[-1].value, WorkerLostError)


def test_what_a_task_raises_before_its_end_is_raised_here(use: Use) -> None:
    with pytest.raises(ValueError, match="too late"):
        follow(use(MadeRay([[*BEGUN, raised()]])))


def test_whatever_decides_the_examples_comes_to_what_it_does_here(
    use: Use, one_thread: None
) -> None:
    # One draw of labels, learned from in five ways; two of them from the very same examples.
    changes: list[dict[str, Any]] = [
        {},
        {"loss": "ce"},
        {"class_weight": "balanced"},
        {"validation": 0.2},
        {"validation": 0.3, "class_weight": "balanced"},
    ]
    jobs = [Job(small(imbalance="long-tailed:0.2", **each)) for each in changes]
    ray = MadeRay()
    there = curves(use(ray).train(jobs, load=load_small))
    here = curves(LocalEngine(choose_execution("cpu")).train(jobs, load=load_small))
    assert there == here
    assert ["validation_accuracy" in there[job] for job in jobs] == [False] * 3 + [True] * 2
    assert there[jobs[0]] != there[jobs[2]]
    assert len(ray.stored) == 1 + 4  # the dataset, and each kind of labels


def curves(events: Iterator[Event]) -> dict[Job, Any]:
    return {event.job: event.value.curve for event in events if event.kind == "finished"}


MANY = [Job(small(seed=seed)) for seed in range(20)]
LONG = [BEGUN[0], *(("epoch", {"epoch": epoch}) for epoch in range(20)), ("finished", RECORD)]
"""A run that is under way for long enough to fill what there is with others."""


def test_jobs_are_asked_for_as_others_end(use: Use) -> None:
    asked, ended, most = 0, 0, 0

    def give() -> Iterator[Job]:
        nonlocal asked
        for job in MANY:
            asked += 1
            yield job

    for event in use(MadeRay([LONG] * len(MANY), cpus=3)).train(give(), load=load_small):
        most = max(most, asked - ended)
        ended += event.kind in ENDINGS
    assert ended == asked == len(MANY)
    assert most == 3 + 2  # all cores, and two that wait for one


def test_a_cluster_that_grows_is_filled(use: Use) -> None:
    ray, under_way, most = MadeRay([LONG] * len(MANY), cpus=1), 0, 0
    for event in use(ray).train(MANY, load=load_small):
        ray.cpus = 6
        under_way += (event.kind == "started") - (event.kind in ENDINGS)
        most = max(most, under_way)
    assert most == 6 + 2


def test_what_is_no_longer_given_is_not_begun(use: Use) -> None:
    enough, ended = False, 0
    ray = MadeRay([LONG] * len(MANY), cpus=1)

    def give() -> Iterator[Job]:
        for job in MANY:
            if enough:
                return
            yield job

    for event in use(ray).train(give(), load=load_small):
        ended += event.kind == "finished"
        enough |= event.kind == "finished"
    assert ended == ray.begun == 1 + 2


@pytest.mark.parametrize(
    ("cpus", "gpus", "room"), [(1, 0.0, 12), (3, 0.0, 3), (1, 0.5, 4), (1, 0.1666, 8), (5, 1.0, 1)]
)
def test_runs_have_room_where_both_cores_and_gpus_are_left(
    cpus: int, gpus: float, room: int
) -> None:
    machines = [{"CPU": 8.0, "GPU": 2.0}, {"CPU": 4.0, "memory": 1e9}]
    assert runs_at_once(machines, cpus=cpus, gpus=gpus) == room
