"""Training that starts over with a weaker penalty when a network collapses."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from labelproof.data.published import is_known
from labelproof.training.checkpoint import newest_whole
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution, StopRequest
from labelproof.training.files import read_fields, read_json, write_text
from labelproof.training.provenance import other_data
from labelproof.training.run_folder import ATTEMPTS, METRICS, SEARCH, RunFolder, owning, remove_run
from labelproof.training.runner import Event, Job, train_runs
from labelproof.tuning.collapse import Watch, back_off
from labelproof.tuning.trial import penalty


@dataclass
class Attempts:
    """The requested settings, and the losses that collapsed.

    Attributes:
        asked: The requested settings, by name.
        loss: The loss in use.
        l1: The weight of the l1 penalty that a search chose with it.
        given_up: The text of each loss that collapsed, and the reason.
        places: The paths of `data` and the file of `labels`, as `note_places` returns them; none
            for a dataset's name.
    """

    asked: dict[str, Any]
    loss: str
    given_up: list[dict[str, str]] = field(default_factory=list)
    places: dict[str, dict[str, str]] = field(default_factory=dict)
    l1: float = 0.0

    def configure(self, configuration: Configuration) -> Configuration:
        """The configuration with the loss in use, and the data by the path the run started with."""
        data = self.asked.get("data", configuration.data)
        return replace(configuration, loss=self.loss, data=data, **penalty(self.l1))

    def write(self, folder: Path, name: str = ATTEMPTS) -> None:
        """Write this to a run's folder."""
        write_text(folder / name, json.dumps(asdict(self), indent=1) + "\n")


def read_attempts(folder: Path, name: str = ATTEMPTS) -> Attempts | None:
    """The attempts noted in a run's folder, or `None`.

    Raises:
        ValueError: The file is damaged.
    """
    path = folder / name
    if not path.exists():
        return None
    try:
        return read_fields(Attempts, read_json(path))
    except (ValueError, TypeError) as error:
        # The error may quote the whole file.
        reason = str(error)[:200]
        raise ValueError(
            f"{path}: not what labelproof writes there ({reason}); start over with --fresh"
        ) from None


def resume_attempts(
    folder: Path, asked: dict[str, Any], loss: str, *, name: str = ATTEMPTS, kind: str = "a run"
) -> Attempts:
    """The attempts that a folder holds for the same settings, or new ones.

    Raises:
        OtherDataError: The folder holds a run on other data.
        ValueError: It holds a run with other settings.
    """
    kept = read_attempts(folder, name)
    if kept is None:
        return Attempts(asked, loss)
    # Settings that an earlier version did not note are not compared.
    different = [name for name in asked if name in kept.asked and kept.asked[name] != asked[name]]
    if "fingerprint" in different:
        raise other_data(folder, kept.asked.get("data"), kind)
    if kept.asked.get("fingerprint") is not None and "fingerprint" in asked:
        different = [name for name in different if not _moved(name, kept, asked[name])]
    if different:
        values = ", ".join(f"{name} {kept.asked.get(name)!r}" for name in different)
        raise ValueError(
            f"{folder} holds {kind} with other settings ({values}); choose another folder with "
            "--output, or start over with --fresh"
        )
    return kept


def _moved(name: str, kept: Attempts, now: object) -> bool:
    """Whether a setting is only another path of data with the same fingerprint."""
    before = kept.asked[name]
    if name not in ("data", "labels") or not (isinstance(before, str) and isinstance(now, str)):
        return False
    if is_known(before) or is_known(now):  # some noise depends on a dataset's name
        return False
    # The fingerprint of images covers names and sizes only: if the old folder still exists, the
    # other one may hold other images.
    earlier = Path(kept.places.get(name, {}).get("path", before)).expanduser()
    return not earlier.is_dir() or earlier.samefile(Path(now).expanduser())


def train_robustly(
    jobs: Sequence[Job],
    execution: Execution,
    *,
    load: Callable[[Configuration], Examples],
    attempts: Attempts,
    note: Callable[[], None],
    weaken: bool = True,
    at_once: int = 1,
    stop: StopRequest | None = None,
) -> Iterator[Event]:
    """Train runs with the loss of the attempts, and yield their events.

    Sparse regularization that is too strong for the data makes a network predict the same class for
    everything. Held-out examples show that within a few epochs. The run is then abandoned, and all
    runs start over with a weaker penalty, so that they stay comparable.

    Args:
        jobs: The runs, each with a folder; finished ones are not trained again.
        execution: The device, and how to use it.
        load: Returns the examples of a configuration, some of them held out.
        attempts: Earlier attempts; new ones are added.
        note: Saves the attempts; called when a run starts and after each collapse.
        weaken: Whether the penalty may be weakened; if not, a notice names a weaker loss.
        at_once: Runs at a time.
        stop: Checked between steps.
    """
    load, reasons = functools.cache(load), dict[Job, str]()
    while True:
        runs = [_configure(job, attempts) for job in jobs]
        for run in runs:
            _remove_collapsed(_folder(run), attempts)
        weaker, reason = back_off(attempts.loss), ""
        possible = weaken and weaker is not None
        # Only the user changes a loss that the user chose.
        advice = "" if weaken or weaker is None else f"; a weaker penalty may help: {weaker}"
        watches: dict[Job, Watch] = {}
        reasons.clear()
        for event in train_runs(
            [run for run in runs if RunFolder(_folder(run)).record(run.configuration) is None],
            execution,
            load=load,
            at_once=at_once,
            stop=stop,
            give_up=lambda event, possible=possible: possible and event.job in reasons,
        ):
            epochs = [event.value] if event.kind == "epoch" else []
            if event.kind == "started":
                # Not before: a run that cannot even start must not occupy its folder.
                note()
                configuration = event.job.configuration
                watches[event.job] = Watch(load(configuration), configuration)
                # The epochs that were trained before the run was stopped.
                file = _folder(event.job) / METRICS
                lines = file.read_text(encoding="utf-8").splitlines() if event.value else []
                epochs = [json.loads(line) for line in lines[: event.value]]
            yield event
            for metrics in epochs:
                why = watches[event.job].look(metrics)
                if why is not None and event.job not in reasons:
                    reasons[event.job] = why
                    text = f"The network has collapsed: {why}{advice}"
                    yield Event(event.job, "notice", text)
            if event.kind == "abandoned":
                reason = reasons[event.job]
                break
        if not reason or weaker is None:
            return
        attempts.given_up.append({"loss": attempts.loss, "reason": reason})
        attempts.loss = weaker
        # Noted before the runs are removed: if killed in between, it resumes with the new loss.
        note()
        text = f"Starting over with a weaker penalty: {weaker}"
        yield Event(_configure(jobs[0], attempts), "notice", text)


def _configure(job: Job, attempts: Attempts) -> Job:
    return replace(job, configuration=attempts.configure(job.configuration))


def _folder(job: Job) -> Path:
    assert job.folder is not None  # noqa: S101
    return job.folder


def _remove_collapsed(folder: Path, attempts: Attempts) -> None:
    """Remove the run in a folder if its loss has collapsed."""
    if not attempts.given_up or not folder.exists():
        return
    checkpoint = newest_whole(folder / "checkpoint")[1]
    given_up = [each["loss"] for each in attempts.given_up]
    if checkpoint is None or checkpoint.values["configuration"]["loss"] in given_up:
        with owning(folder):
            remove_run(folder, keep=(ATTEMPTS, SEARCH))
