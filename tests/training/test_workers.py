import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from labelproof.training import WorkerError, run_tasks


def double(task: int) -> Generator[str, None, int]:
    yield f"at {task}"
    return 2 * task


def die(task: int) -> Generator[int, None, int]:
    yield task
    os._exit(7)


def write_or_fail(task: str) -> Generator[int, None, None]:
    for tick in range(1000):
        Path(task).write_text(str(tick))
        yield tick
        if task.endswith("b"):
            raise RuntimeError("b is too much")
        time.sleep(0.05)


def test_every_task_is_done_once_and_its_progress_is_heard() -> None:
    events = list(run_tasks([1, 2, 3], double, processes=1))
    assert sorted(e.value for e in events if e.kind == "done") == [2, 4, 6]
    assert sorted(e.value for e in events if e.kind == "progress") == ["at 1", "at 2", "at 3"]
    assert all(e.value == 2 * e.task for e in events if e.kind == "done")


def test_workers_that_die_are_noticed() -> None:
    with pytest.raises(WorkerError, match=r"2 runs to do \(exit codes \[7\]\)"):
        list(run_tasks([1, 2], die, processes=2))


def test_a_failure_names_the_task_shows_why_and_stops_the_others(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in "ab"]
    with pytest.raises(WorkerError, match=r"(?s)b failed:.*b is too much"):
        list(run_tasks(files, write_or_fail, processes=2))
    seen = [Path(file).read_text() for file in files if Path(file).exists()]
    time.sleep(0.3)
    assert seen == [Path(file).read_text() for file in files if Path(file).exists()]
