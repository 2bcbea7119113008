"""`labelproof bench`: train the runs of the paper's tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import typer

from labelproof.cli.console import DIVERGED, TIME_IS_UP, ending, tell, terminal, warn
from labelproof.cli.options import parse_seeds, split_names, takes
from labelproof.data import load_dataset
from labelproof.data.notices import count
from labelproof.data.published import find_human_labels
from labelproof.experiments.cluster import RayEngine, share_of_gpu
from labelproof.experiments.grids import plan_all
from labelproof.experiments.presets import DATASETS
from labelproof.experiments.records import RecordStore, explain_other_size, is_of_published_data
from labelproof.ranges import choose, within
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.execution import StopRequest, choose_execution
from labelproof.training.files import remove_folder
from labelproof.training.provenance import mark_data, refuse_other_data
from labelproof.training.runner import Event, Job, train_runs
from labelproof.verbs.progress import Reporter

AT_ONCE = {"mnist": 10, "cifar10": 6, "cifar100": 3}
"""Runs that fill a large GPU; more of them only take memory."""


@takes(losses=True)
def bench(
    tables: list[str],
    *,
    dataset: str,
    seeds: str = "1",
    methods: str | None = None,
    columns: str | None = None,
    records: Path = Path("records"),
    runs: Path = Path("labelproof-runs"),
    at_once: int = 0,
    keep_runs: bool = False,
    epochs: int | None = None,
    minutes: float | None = None,
    device: str = "auto",
    engine: str = "local",
    address: str | None = None,
    cpus_per_run: int = 1,
    data_root: Path | None = None,
    dry_run: bool = False,
) -> None:
    """Train the runs of the paper's tables that have no record yet, several at once on a GPU.

    The whole table of symmetric noise on MNIST, three seeds:

        labelproof bench symmetric --dataset mnist --seeds 1,2,3

    Every run leaves a small record of its configuration, curve and versions under --records, which
    is all that 'labelproof table' reads. If interrupted, the same command resumes: finished runs
    are not trained again, others continue from their last checkpoint, never on different data. To
    merge the records of several machines, copy them into one folder.

    See the plan first, or test one cell for one epoch, which takes a few minutes on a CPU:

        labelproof bench symmetric --dataset mnist --dry-run

        labelproof bench symmetric --dataset mnist --methods CE --columns 0.8 --epochs 1

    Several tables within an hour; the exit code is 75 if runs are left:

        labelproof bench symmetric asymmetric --dataset cifar10 --minutes 55

    On a Ray cluster, from one of its machines:

        labelproof bench symmetric --dataset mnist --engine ray --address auto

    Args:
        tables: symmetric, asymmetric, comparison, imbalance, webvision, beyond, human,
            sweep-lambda, sweep-tau or sweep-p; several of them; or all, for every table of the
            dataset.
        dataset: mnist, cifar10, cifar100 or webvision.
        seeds: Seeds, such as 1,2,3 or 1-3.
        runs: Folder of unfinished runs.
        at_once: Runs at a time on the device; with Ray, on each GPU. By default enough to fill a
            GPU, else 1.
        keep_runs: Keep the weights of finished runs.
        epochs: Train every run for this many epochs, as a test; tables do not use such records.
        minutes: Stop after this time and save unfinished runs.
        engine: local: this process; ray: a Ray cluster.
        address: The Ray cluster: auto, or HOST:PORT; by default a temporary one on this machine.
        cpus_per_run: With Ray: CPU cores and threads of each run.
        dry_run: Train nothing; list the runs to train.
    """
    reporter = terminal()
    if choose("engine", engine, ("local", "ray")) == "local" and address is not None:
        raise ValueError("--address: expected only with --engine ray")
    planned = plan_all(
        choose("dataset", dataset, DATASETS),
        seeds=parse_seeds(seeds),
        methods=split_names(methods),
        columns=split_names(columns),
        tables=() if "all" in tables else tables,
    )
    if epochs is not None:
        planned = [
            run._replace(configuration=replace(run.configuration, epochs=epochs)) for run in planned
        ]
    load = BenchData(data_root, RecordStore(records))
    todo = [run for run in planned if not load.is_done(run.configuration)]
    folders = [runs / run.configuration.name for run in todo]
    tell(f"{count(len(planned), 'run')}, {len(planned) - len(todo)} with a record")
    if dry_run:
        for run, folder in zip(todo, folders, strict=True):
            started = f"  started in {folder}" if folder.is_dir() else ""
            tell(f"{run.method:<12} {run.column:<10} {folder.name}{started}")
        return
    if not todo:
        return
    if engine == "ray":
        share = share_of_gpu(at_once or AT_ONCE.get(dataset, 1))
        train = RayEngine(address, share, cpus_per_run, device).train
    else:
        execution = choose_execution(device)
        fill = AT_ONCE.get(dataset, 1) if execution.device.type == "cuda" else 1
        train = functools.partial(train_runs, execution=execution, at_once=at_once or fill)
    seconds = None if minutes is None else 60 * within("minutes", minutes, 0, open_low=True)
    with ending(reporter), StopRequest(seconds) as stop:
        if explained := explain_other_size(load.dataset(dataset)):
            warn(explained)
        # Now, since a run's turn may come tomorrow.
        for run, folder in zip(todo, folders, strict=True):
            refuse_other_data(folder, lambda run=run: load.mark(run.configuration))
        jobs = [Job(run.configuration, place) for run, place in zip(todo, folders, strict=True)]
        failures = _carry_out(jobs, train, load, stop, reporter, keep_runs)
    if stop.signal is not None:
        tell("Stopped and saved; the same command resumes from here.")
        raise typer.Exit(stop.exit_code)
    left = sum(not load.is_done(job.configuration) for job in jobs) - failures
    if left and minutes is not None:
        runs_left = f"{count(left, 'run')} of {len(jobs)} left"
        tell(f"Time is up: {runs_left}; saved, and the same command resumes from here.")
        raise typer.Exit(TIME_IS_UP)
    if failures:
        raise typer.Exit(DIVERGED)


def _carry_out(
    jobs: Sequence[Job],
    train: Callable[..., Iterator[Event]],
    load: BenchData,
    stop: StopRequest,
    reporter: Reporter,
    keep_runs: bool,
) -> int:
    """Train all, and store a record as soon as a run is done; returns the number of failures."""
    failures = 0
    epochs = sum(job.configuration.epochs for job in jobs)
    with reporter.display(runs=len(jobs), epochs=epochs) as display:
        # Another bench with the same records may have finished some by now.
        given = (job for job in jobs if not load.is_done(job.configuration))
        for event in train(given, load=load, stop=stop):
            display.show(event)
            folder = event.job.folder
            if event.kind == "finished":
                load.store.add(event.value)
                # Without a shared file system, a cluster's worker has it on its own disk.
                if folder is not None and folder.is_dir() and not keep_runs:
                    remove_folder(folder)
            elif event.kind == "failed":
                failures += 1
                display.say(f"{event.job.configuration.name}: {event.value}")
    return failures


class BenchData:
    """Loads the examples of a configuration; each dataset is read once."""

    def __init__(self, root: Path | None, store: RecordStore):
        self.root, self.store = root, store
        self.dataset = functools.cache(functools.partial(load_dataset, root=root))

    def __call__(self, configuration: Configuration) -> Examples:
        """The examples of a run."""
        human = find_human_labels(configuration.data, self.root)
        return choose_examples(configuration, self.dataset(configuration.data), human=human)

    def mark(self, configuration: Configuration) -> str:
        """The fingerprint of what a run is trained on."""
        return mark_data(configuration, self(configuration))

    def is_done(self, configuration: Configuration) -> bool:
        """Whether a run has a record by now, in any precision.

        A record of data of another size than the published ones counts only for the same data,
        which have to be read to compare them.
        """
        record = self.store.find(replace(configuration, precision="auto"))
        if record is None or is_of_published_data(record):
            return record is not None
        try:
            now = self.mark(Configuration.recorded(record.configuration))
            return record.data.get("fingerprint") == now
        except OSError:  # the data are missing: training reports that, and a list does not need it
            return False
