"""Train so that it works out: where a network collapses, start over with a weaker penalty."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labelproof.data.published import is_known
from labelproof.training.checkpoint import load_checkpoint
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution
from labelproof.training.files import write_text
from labelproof.training.provenance import OtherDataError
from labelproof.training.run_folder import ATTEMPTS, SEARCH, owning, remove_run
from labelproof.training.runner import Event, Job, train_runs
from labelproof.training.stop_request import StopRequest
from labelproof.tuning.collapse import Watch, back_off

__all__ = [
    "Attempts",
    "find_again",
    "go_on",
    "note_place",
    "note_places",
    "places_of",
    "read_attempts",
    "train_robustly",
]


@dataclass
class Attempts:
    """What was asked for, and the losses that were given up on the way.

    Attributes:
        asked: The settings as they were asked for, by name.
        given_up: For each loss that collapsed, its text and why it was given up.
        loss: The loss in use.
        places: Where the `data` and the file of `labels` were, as `note_place` has it; without
            those that have a name and no place, and empty where an earlier version did not tell.
    """

    asked: dict[str, Any]
    loss: str
    given_up: list[dict[str, str]] = field(default_factory=list)
    places: dict[str, dict[str, str]] = field(default_factory=dict)

    def write(self, folder: Path, name: str = ATTEMPTS) -> None:
        """Keep it in a run's folder."""
        values = {
            "asked": self.asked,
            "loss": self.loss,
            "given_up": self.given_up,
            "places": self.places,
        }
        write_text(folder / name, json.dumps(values, indent=1) + "\n")


def read_attempts(folder: Path, name: str = ATTEMPTS) -> Attempts | None:
    """What a run's folder tells of earlier attempts, or `None`.

    Raises:
        ValueError: The file is damaged.
    """
    path = folder / name
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Attempts(
            dict(values["asked"]),
            str(values["loss"]),
            list(values["given_up"]),
            {name: dict(place) for name, place in values.get("places", {}).items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{path}: not what labelproof writes there ({error}); start anew with --fresh"
        ) from None


def go_on(
    folder: Path,
    asked: dict[str, Any],
    loss: str,
    *,
    name: str = ATTEMPTS,
    kind: str = "a run",
) -> Attempts:
    """What a folder has of the same settings, or a new beginning.

    Raises:
        OtherDataError: The folder's is of other data.
        ValueError: It is of other settings.
    """
    kept = read_attempts(folder, name)
    if kept is None:
        return Attempts(asked, loss)
    # What an earlier version did not write down is not compared.
    different = [name for name in asked if name in kept.asked and kept.asked[name] != asked[name]]
    if "fingerprint" in different:
        raise OtherDataError(folder, data=kept.asked.get("data"), kind=kind)
    if kept.asked.get("fingerprint") is not None and "fingerprint" in asked:
        different = [each for each in different if not _moved(each, kept, asked[each])]
    if different:
        told = ", ".join(f"{name} {kept.asked.get(name)!r}" for name in different)
        raise ValueError(
            f"{folder} holds {kind} with other settings ({told}); choose another folder with "
            "--output, or start anew with --fresh"
        )
    return kept


def _moved(name: str, kept: Attempts, now: object) -> bool:
    """Whether a setting is a path, of what by its fingerprint is the same at another place."""
    before = kept.asked[name]
    if name not in ("data", "labels") or not (isinstance(before, str) and isinstance(now, str)):
        return False
    # A name is more than a place: some noise goes by it, and its labels are known to be right.
    if name == "data" and (is_known(before) or is_known(now)):
        return False
    if not os.path.isdir(os.path.expanduser(now)):
        return True
    # A fingerprint knows images by their names and sizes: a folder that is still where it was has
    # not been moved, and another may have the like.
    earlier = os.path.expanduser(kept.places.get(name, {}).get("path", before))
    return not os.path.exists(earlier) or os.path.samefile(earlier, os.path.expanduser(now))


def train_robustly(
    job: Job,
    execution: Execution,
    *,
    load: Callable[[Configuration], Examples],
    attempts: Attempts,
    weaken: bool = True,
    checkpoint_seconds: float = 30.0,
    stop: StopRequest | None = None,
) -> Iterator[Event]:
    """Do a job, and yield what happens to it as it happens.

    Sparse regularization that is too strong for the data makes a network say the same class for
    everything. That shows within a few epochs on the examples that are held out. The run is then
    given up, its penalty is weakened, and it starts over; what was tried is kept in the folder.

    Args:
        job: What is to be done; its folder is one.
        execution: On which device, and how.
        load: Gives the examples of a configuration, some of them held out.
        attempts: What was tried before; it is added to.
        weaken: Whether the loss may be weakened. Where it may not, a collapse is said, and
            which loss would be a weaker one.
        checkpoint_seconds: Time between two checkpoints.
        stop: Asked between steps.
    """
    folder = job.folder
    assert folder is not None  # noqa: S101
    _remove_given_up(folder, attempts)
    while True:
        examples = load(job.configuration)
        watch = Watch(examples, job.configuration)
        possible = back_off(job.configuration.loss)
        weaker = possible if weaken else None
        abandoned = False
        for event in train_runs(
            [job],
            execution,
            load=lambda _, examples=examples: examples,
            checkpoint_seconds=checkpoint_seconds,
            stop=stop,
            give_up=lambda event, watch=watch, weaker=weaker: watch(event) and weaker is not None,
        ):
            abandoned |= event.kind == "abandoned"
            if event.kind == "started":
                # Not before: what cannot be trained at all must not stand in a folder's way.
                attempts.write(folder)
                watch.remember(folder, event.value)
            yield event
            if watch.news:
                # A loss that the user chose is the user's to change.
                left = possible is not None and not weaken
                advice = f"; a weaker penalty may help: {possible}" if left else ""
                yield Event(job, "notice", watch.news + advice)
                watch.news = ""
        if not abandoned:
            return
        assert weaker is not None  # noqa: S101
        attempts.given_up.append({"loss": job.configuration.loss, "reason": watch.reason})
        attempts.loss = weaker
        # First the note, then the removal: whoever is killed in between goes on with the new loss.
        attempts.write(folder)
        _remove_given_up(folder, attempts)
        job = replace(job, configuration=replace(job.configuration, loss=weaker))
        yield Event(job, "notice", f"Starting over with a weaker penalty: {weaker}")


def _remove_given_up(folder: Path, attempts: Attempts) -> None:
    """Remove the run in a folder if it is of a loss that was given up."""
    checkpoint = load_checkpoint(folder / "checkpoint", on_problem=lambda _: None)
    given_up = {each["loss"] for each in attempts.given_up}
    begun = attempts.given_up and checkpoint is None
    if begun or (checkpoint is not None and checkpoint.values["configuration"]["loss"] in given_up):
        with owning(folder):
            remove_run(folder, keep=(ATTEMPTS, SEARCH))


_WHOLE, _FROM_RUN = "path", "from_run"
_RUNS = "labelproof-runs"
"""Where `labelproof train` keeps its runs, beside which the data may be."""


def note_place(path: str | os.PathLike[str], folder: Path) -> dict[str, str]:
    """Where data are, as a run's folder notes it: their whole path, and the way from the folder.

    Example:
        >>> noted = note_place("/srv/data/cust.csv", Path("/srv/cust-fit"))
        >>> noted["path"], noted["from_run"]
        ('/srv/data/cust.csv', '../data/cust.csv')
    """
    whole = os.path.abspath(Path(path).expanduser())
    try:
        way = os.path.relpath(whole, os.path.realpath(folder))
        # With slashes, which every system takes: run and data may be moved to another one.
        return {_WHOLE: whole, _FROM_RUN: way.replace(os.sep, "/")}
    except ValueError:  # on another drive
        return {_WHOLE: whole}


def note_places(data: str, labels: Path | None, folder: Path) -> dict[str, dict[str, str]]:
    """Where what a run reads is, for whoever reads it again; a dataset's name is no place.

    >>> note_places("mnist", None, Path("run")), list(note_places("t.csv", None, Path("run")))
    ({}, ['data'])
    """
    places = {} if is_known(data) else {"data": note_place(data, folder)}
    return places if labels is None else places | {"labels": note_place(labels, folder)}


def places_of(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> list[str]:
    """Where data that a run was told of may be, as whole paths, the likeliest first.

    The way from the run's folder leads to the data wherever both were moved together. The working
    directory comes last: it may have other data of the same name.

    Example:
        >>> noted = {"path": "/srv/t.csv", "from_run": "../t.csv"}
        >>> places_of("t.csv", Path("/moved/t-fit"), noted)[:2]
        ['/moved/t.csv', '/srv/t.csv']
    """
    here = os.path.realpath(folder)
    told = os.path.expanduser(path)
    ways: list[str] = []
    if noted:
        ways += [os.path.join(here, noted[_FROM_RUN])] if _FROM_RUN in noted else []
        ways += [noted[_WHOLE]] if _WHOLE in noted else []
    beside = os.path.dirname(here)
    ways.append(os.path.join(beside, told))
    if os.path.basename(beside) == _RUNS:
        ways.append(os.path.join(os.path.dirname(beside), told))
    return list(dict.fromkeys(os.path.abspath(way) for way in (*ways, told)))


def find_again(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> str | None:
    """The first of `places_of` where there is something; `None` if there is nowhere anything.

    What is where it was said to be is called as it was said.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "t.csv").write_text("")
    >>> Path(find_again("t.csv", folder / "t-fit")).name, find_again("u.csv", folder / "u-fit")
    ('t.csv', None)
    """
    found = next((place for place in places_of(path, folder, noted) if os.path.exists(place)), None)
    return path if found == os.path.abspath(os.path.expanduser(path)) else found
