"""A run that was stopped, killed or cut off ends with the same bytes as one that was not."""

import json
import random
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from small_runs import CPU, StopAfter, kinds, load_small, outcome, small, train

from labelproof.training import Event, Job, read_record, train_runs
from labelproof.training.run_folder import OtherConfigurationError


def finish(job: Job, *, stops: list[int]) -> list[Event]:
    """Train with interruptions after so many steps each, and then to the end."""
    for steps in stops:
        assert kinds(train(job, stop=StopAfter(steps)))[-1] == "stopped"
    events = train(job)
    assert kinds(events)[-1] == "finished"
    return events


CASES: dict[str, dict[str, Any]] = {
    "sparse": {},
    "convolutions": {"network": "cnn4(width=4)", "augmentation": "crop:1,flip,rotation:20"},
    "draws": {"loss": "nl", "average": 0.9},
    "pair": {"algorithm": "co-teaching(rate=estimate,ramp=3)", "l1": 1e-3, "l1_on": "weights"},
    "negative to positive": {"algorithm": "nlnl(negative=1,selective=1)", "loss": "ce"},
    "early learning": {"algorithm": "elr", "loss": "ce", "optimizer": "adamw"},
    "dropout": {"network": "small_runs:dropping", "imbalance": "step:0.5"},
    "written down": {"network": "mlp(hidden=16,depth=1)", "optimizer": "adamw"},
    "half": {"precision": "fp16", "schedule": "exponential:0.7"},
}


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("case", CASES)
def test_stopped_anywhere_and_started_again(tmp_path: Path, case: str) -> None:
    configuration = small(**CASES[case])
    draw = random.Random(case)  # noqa: S311
    whole = Job(configuration, tmp_path / "whole")
    assert kinds(train(whole)) == ["started", "epoch", "epoch", "epoch", "finished"]
    steps = 3 * -(-len(load_small(configuration).used) // 32)
    # At the end of an epoch, after its first step, and at a place inside.
    stops_at = [steps // 3, 1, draw.randrange(1, steps // 3)]
    finish(Job(configuration, tmp_path / "stopped"), stops=stops_at)
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")
    first, second = read_record(tmp_path / "whole"), read_record(tmp_path / "stopped")
    assert first.curve == second.curve


@pytest.mark.parametrize("steps", [7, 13])
def test_a_stop_is_granted_after_the_step_it_came_in(tmp_path: Path, steps: int) -> None:
    events = train(Job(small(), tmp_path), stop=StopAfter(steps))
    assert kinds(events) == ["started", *["epoch"] * (steps // 7), "stopped"]
    assert events[-1].value == divmod(steps, 7)
    name = f"{steps // 7:05}-{steps % 7:07}.safetensors"
    assert max(path.name for path in (tmp_path / "checkpoint").iterdir()) == name
    again = train(Job(small(), tmp_path))
    assert again[0].value == steps // 7
    assert kinds(again) == ["started", *["epoch"] * (3 - steps // 7), "finished"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run comes to that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    train(Job(small(), folder))
    return outcome(folder)


def test_whoever_stops_listening_loses_nothing(tmp_path: Path, whole: dict[str, bytes]) -> None:
    job = Job(small(), tmp_path / "cut")
    events = train_runs([job], CPU, load=load_small, checkpoint_seconds=1000)
    for event in events:
        if event.kind == "epoch" and event.value["epoch"] == 1:
            break
    events.close()
    assert len((tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()) == 2
    again = finish(job, stops=[])
    assert again[0].value == 2
    assert outcome(tmp_path / "cut") == whole


def test_lines_after_a_checkpoint_are_written_once(tmp_path: Path, whole: dict[str, bytes]) -> None:
    job = Job(small(), tmp_path / "cut")
    train(job, stop=StopAfter(9))
    for name in ("metrics.jsonl", "timing.jsonl"):
        with (tmp_path / "cut" / name).open("a") as stream:
            stream.write('{"epoch": 1, "train_loss": 1.5}\n{"epoch": 2, "tra')
    finish(job, stops=[])
    assert outcome(tmp_path / "cut") == whole
    timing = (tmp_path / "cut" / "timing.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in timing] == [0, 1, 2]


def test_a_damaged_checkpoint_costs_only_time(tmp_path: Path, whole: dict[str, bytes]) -> None:
    job = Job(small(), tmp_path / "damaged")
    train(job, stop=StopAfter(17))
    newest, before = sorted((tmp_path / "damaged" / "checkpoint").iterdir(), reverse=True)
    assert (newest.stem, before.stem) == ("00002-0000003", "00002-0000000")
    newest.write_bytes(newest.read_bytes()[:-100])
    events = train(job, stop=StopAfter(1))
    assert kinds(events) == ["notice", "started", "stopped"]
    assert str(newest) in events[0].value
    assert "checkpoint 00002-0000000 is used instead" in events[0].value
    for path in (tmp_path / "damaged" / "checkpoint").iterdir():
        path.write_text("{")
    events = finish(job, stops=[])
    assert kinds(events)[:3] == ["notice", "notice", "started"]
    assert "the training starts anew" in events[0].value
    assert events[2].value == 0
    assert outcome(tmp_path / "damaged") == whole


class InterruptedStop(StopAfter):
    """A stop in whose saving a second Ctrl-C comes, at one of the lines of the engine."""

    def __init__(self, steps: int, line: int):
        super().__init__(steps)
        self.lines = line

    @property
    def wanted(self) -> bool:
        if super().wanted:
            sys.settrace(self._trace)
            return True
        return False

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if "labelproof/training" not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        self.lines -= event == "line"
        if self.lines == 0:
            raise KeyboardInterrupt
        return self._trace


# Between opening a file and entering its block, an interrupt leaves it to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_second_interrupt_while_the_first_is_saved_changes_nothing(tmp_path: Path) -> None:
    configuration = small(network="mlp(hidden=16,depth=1)", epochs=2)
    train(Job(configuration, tmp_path / "whole"))
    draw, interrupts = random.Random(1), 0  # noqa: S311
    for number in range(6):
        job = Job(configuration, tmp_path / str(number))
        stop = InterruptedStop(10, 1 + draw.randrange(500))
        try:
            events = train(job, stop=stop, checkpoint_seconds=1000)
            assert kinds(events)[-1] == "stopped"
        except KeyboardInterrupt:
            interrupts += 1
        finally:
            sys.settrace(None)
        finish(job, stops=[])
        assert outcome(tmp_path / str(number)) == outcome(tmp_path / "whole")
    assert interrupts > 2


def test_a_run_without_its_record_is_finished_at_once(tmp_path: Path) -> None:
    job = Job(small(), tmp_path)
    train(job)
    before, record = outcome(tmp_path), (tmp_path / "record.json").read_text()
    (tmp_path / "record.json").unlink()
    (tmp_path / "predictions.npz").unlink()
    events = train(job)
    assert kinds(events) == ["started", "finished"]
    assert events[0].value == 3
    assert outcome(tmp_path) == before
    assert (tmp_path / "record.json").read_text() == record


def test_a_folder_of_another_configuration_is_refused_and_left_alone(tmp_path: Path) -> None:
    train(Job(small(), tmp_path), stop=StopAfter(9))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]
    before = {path: path.read_bytes() for path in files}
    for changes in (
        {"seed": 2},
        {"epochs": 4},
        {"precision": "bf16"},
        {"noise": "pair:0.2", "learning_rate": 0.5},
    ):
        with pytest.raises(OtherConfigurationError, match=re.escape(str(tmp_path))) as refusal:
            train(Job(small(**changes), tmp_path))
        for name, value in changes.items():
            for said in (f"{name}: ", f"{name}={value!r}"):
                assert said in str(refusal.value)
        assert "--fresh" in str(refusal.value)
        assert {path: path.read_bytes() for path in before} == before


def test_other_runs_are_not_lost_when_one_is_refused(tmp_path: Path) -> None:
    train(Job(small(seed=9), tmp_path / "other"), stop=StopAfter(2))
    jobs = [
        Job(small(), tmp_path / "mine"),
        Job(small(epochs=1), tmp_path / "short"),
        Job(small(), tmp_path / "other"),
    ]
    with pytest.raises(OtherConfigurationError):
        train(jobs, at_once=2, checkpoint_seconds=1000)
    # Whatever the first had done is there: seven steps and a checkpoint, not a new beginning.
    assert train(jobs[0])[0].value == 1
