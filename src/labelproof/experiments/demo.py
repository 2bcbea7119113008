"""The demo: digits with wrong labels, three losses, each plain and with sparse regularization.

One regulariser and one setting for all rows. They were chosen on a noisy validation split of the
training images (`benchmarks/demo_settings.py`), never on the test images.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import torch

from labelproof.data import load_digits
from labelproof.experiments.figures import Embedding, embed
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
from labelproof.training.trained_network import load_network

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


@dataclass(frozen=True)
class DemoRun:
    """One training run of the demo.

    Attributes:
        method: The row it belongs to, for display only.
        configuration: All settings that affect the result.
        folder: The folder of the run, one for each configuration.
        record: The record, once the run is finished.
    """

    method: str
    configuration: Configuration
    folder: Path
    record: RunRecord | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.method} seed {self.configuration.seed}"

    @property
    def result(self) -> RunRecord:
        """The record of a finished run."""
        assert self.record is not None  # noqa: S101
        return self.record


@dataclass(frozen=True)
class Row:
    """A method's last-epoch accuracy over its seeds, percent.

    Attributes:
        method: Its name.
        loss: As text.
        accuracies: Of each seed.
        gain: Mean accuracy minus that of the same loss without regularization, if there is one.
    """

    method: str
    loss: str
    accuracies: tuple[float, ...]
    gain: float | None = None

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return mean(self.accuracies)

    @property
    def std(self) -> float:
        """Standard deviation over the seeds, 0 for a single one."""
        return stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


def plan(
    setting: Configuration, *, seeds: Sequence[int], folder: Path, extra: Sequence[str] = ()
) -> list[DemoRun]:
    """All runs of a demo: every base plain and regularised, and the user's own losses.

    The loss and seed of the setting are replaced. A seed decides the noise, the initial weights and
    the order of the images. Each `extra` loss becomes a row, unless it is one already.

    Example:
        >>> runs = plan(SETTING, seeds=[1], folder=Path("runs"), extra=["mae", "CE"])
        >>> [run.method for run in runs]
        ['CE', 'CE+SR', 'FL', 'FL+SR', 'GCE', 'GCE+SR', 'mae']
        >>> print(runs[-1].folder.as_posix())
        runs/digits-symmetric-0.4-mae-s1-...
    """
    table = {}
    for name, base in BASES.items():
        table[name] = replace(setting, loss=base)
        table[name + REGULARISED] = replace(setting, loss=f"{base}+{SPARSE}")
    for text in extra:
        row = replace(setting, loss=text)
        # The same loss written differently is the same run; "FL" may be the user's or the demo's.
        if row not in table.values():
            table[row.loss if text in table else text] = row
    return [
        DemoRun(name, run, folder / run.name)
        for seed in seeds
        for name, row in table.items()
        for run in [replace(row, seed=seed)]
    ]


def finished(runs: Sequence[DemoRun]) -> list[DemoRun]:
    """The runs that have a record, with it, in the order of the plan."""
    found = [replace(run, record=RunFolder(run.folder).record(run.configuration)) for run in runs]
    return [run for run in found if run.record is not None]


def discard(runs: Sequence[DemoRun]) -> None:
    """Remove the folders of the runs, so that they start over."""
    for run in runs:
        if run.folder.exists():
            remove_folder(run.folder)


def train(run: DemoRun) -> RunRecord | DivergedError:
    """Train or resume one run; if it diverges, the error is returned, so that others continue."""
    jobs = [Job(run.configuration, run.folder)]
    execution = choose_execution("cpu")
    *_, last = train_runs(
        jobs, execution, load=lambda chosen: choose_examples(chosen, load_digits())
    )
    return last.value


def train_all(
    runs: Sequence[DemoRun], *, processes: int
) -> Iterator[tuple[DemoRun, RunRecord | DivergedError]]:
    """Train runs in processes of one thread each; yield each with its result as it ends."""
    if processes <= 1 or len(runs) <= 1:
        yield from ((run, train(run)) for run in runs)
        return
    context = multiprocessing.get_context("spawn")
    number = min(processes, len(runs))
    with ProcessPoolExecutor(number, context, torch.set_num_threads, (1,)) as pool:
        try:
            # Ctrl-C reaches every process of the terminal; only this one handles it.
            with interrupts(signal.SIG_IGN):
                futures = {pool.submit(train, run): run for run in runs}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def embed_digits(run: DemoRun) -> Embedding:
    """The embedding of the test images by a trained network."""
    dataset = load_digits()
    return embed(load_network(run.folder), dataset, np.arange(len(dataset.test)))


def plain(method: str) -> str | None:
    """The name of a regularised row without regularization, else `None`."""
    return method.removesuffix(REGULARISED) if method.endswith(REGULARISED) else None


def rows(runs: Sequence[DemoRun]) -> list[Row]:
    """A row for each method, over the seeds that are finished."""
    table: dict[str, Row] = {}
    for name in dict.fromkeys(run.method for run in runs):
        own = [run for run in runs if run.method == name]
        accuracies = tuple(run.result.final_accuracy for run in own)
        table[name] = Row(name, own[0].configuration.loss, accuracies)
    return [
        replace(row, gain=row.mean - table[base].mean) if (base := plain(name)) in table else row
        for name, row in table.items()
    ]
