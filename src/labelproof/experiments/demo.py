"""The demo: digits with wrong labels, three losses, each plain and with sparse regularization.

One regulariser and one setting for all rows. They were chosen on a noisy validation split of the
training images (`benchmarks/demo_settings.py`), never on the test images.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from labelproof.data import load_digits
from labelproof.training import (
    Configuration,
    DivergedError,
    Job,
    RunRecord,
    choose_examples,
    choose_execution,
    train_runs,
)
from labelproof.training.execution import interrupts
from labelproof.training.files import remove_folder
from labelproof.training.run_folder import RunFolder

SPARSE = "sr(tau=0.5,p=0.1,lambda0=5,rho=1.1,normalize=false)"
"""The regulariser of every regularised row."""

BASES = {"CE": "ce", "FL": "fl(gamma=0.5)", "GCE": "gce(q=0.01)"}
"""The rows by name. GCE has the q that the paper uses with sparse regularization."""

SETTING = Configuration(
    "digits",
    noise="symmetric:0.4",
    network="cnn4(width=12)",
    epochs=40,
    batch_size=64,
    learning_rate=0.01,
    weight_decay=1e-3,
    clip_norm=5,
    # Not `auto`: the record would have the precision it resolves to, and so another name.
    precision="float32",
)
"""What all runs have in common; each has its own loss and seed."""


REGULARISED = "+SR"
"""The suffix of a regularised row's name."""


class Result(NamedTuple):
    """A finished run, and the name of its row."""

    method: str
    job: Job
    record: RunRecord


def plan(
    setting: Configuration, *, seeds: Sequence[int], folder: Path, extra: Sequence[str] = ()
) -> dict[Job, str]:
    """All runs of a demo with the names of their rows: every base, plain and regularised, and more.

    The loss and seed of the setting are replaced. A seed decides the noise, the initial weights and
    the order of the images. Each `extra` loss becomes a row, unless it is one already.

    Example:
        >>> runs = plan(SETTING, seeds=[1], folder=Path("runs"), extra=["mae", "CE"])
        >>> list(runs.values())
        ['CE', 'CE+SR', 'FL', 'FL+SR', 'GCE', 'GCE+SR', 'mae']
        >>> print(list(runs)[-1].folder.as_posix())
        runs/digits-symmetric-0.4-mae-s1-...
    """
    names: dict[Configuration, str] = {}
    for name, base in BASES.items():
        names[replace(setting, loss=base)] = name
        names[replace(setting, loss=f"{base}+{SPARSE}")] = name + REGULARISED
    for text in extra:
        row = replace(setting, loss=text)
        # The same loss written differently is the same run; "FL" may be the user's or the demo's.
        names.setdefault(row, row.loss if text in names.values() else text)
    return {
        Job(run, folder / run.name): name
        for seed in seeds
        for row, name in names.items()
        for run in [replace(row, seed=seed)]
    }


def finished(runs: Mapping[Job, str]) -> list[Result]:
    """The runs that have a record, in the order of the plan."""
    return [
        Result(method, job, record)
        for job, method in runs.items()
        if job.folder and (record := RunFolder(job.folder).record(job.configuration))
    ]


def discard(jobs: Iterable[Job]) -> None:
    """Remove the folders of the runs, so that they start over."""
    for job in jobs:
        if job.folder and job.folder.exists():
            remove_folder(job.folder)


def train(job: Job) -> tuple[Job, RunRecord | DivergedError]:
    """Train or resume one run; if it diverges, the error is returned, so that others continue."""
    execution = choose_execution("cpu")
    *_, last = train_runs(
        [job], execution, load=lambda chosen: choose_examples(chosen, load_digits())
    )
    return job, last.value


def train_all(
    jobs: Sequence[Job], *, processes: int
) -> Generator[tuple[Job, RunRecord | DivergedError]]:
    """Train runs in processes of one thread each; yield each with its result as it ends."""
    if processes <= 1 or len(jobs) <= 1:
        yield from map(train, jobs)
        return
    context = multiprocessing.get_context("spawn")
    number, others = min(processes, len(jobs)), {*multiprocessing.active_children()}
    with ProcessPoolExecutor(number, context, torch.set_num_threads, (1,)) as pool:
        try:
            # Ctrl-C reaches every process of the terminal; only this one handles it.
            with interrupts(signal.SIG_IGN):
                futures = [pool.submit(train, job) for job in jobs]
            yield from (future.result() for future in as_completed(futures))
        except BaseException:
            for process in {*multiprocessing.active_children()} - others:
                process.terminate()
            raise


def plain(method: str) -> str | None:
    """The name of a regularised row without regularization, else `None`."""
    return method.removesuffix(REGULARISED) if method.endswith(REGULARISED) else None


def rows(results: Sequence[Result]) -> list[Any]:
    """For each method its loss, and mean, std and number of seeds of the last epoch's accuracy (%).

    The gain is the mean minus that of the same loss without regularization, or `None`.
    """
    runs = [(method, job.configuration.loss, r.final_accuracy) for method, job, r in results]
    table = pd.DataFrame(runs, columns=["method", "loss", "accuracy"])
    accuracy = table.groupby(["method", "loss"], sort=False).accuracy
    table = accuracy.agg(mean="mean", std="std", seeds="count").reset_index("loss")
    table["gain"] = table["mean"] - table["mean"].reindex(table.index.map(plain)).to_numpy()
    return [*table.astype(object).where(table.notna(), None).reset_index().itertuples(index=False)]
