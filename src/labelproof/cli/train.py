"""`labelproof train`: train a network on a dataset, with whatever noise and loss."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

from labelproof.cli import options
from labelproof.cli.console import Terminal, ending, warn
from labelproof.cli.options import option, read_assignments, read_settings
from labelproof.fitting.recipe import LARGE
from labelproof.training.algorithms import ALGORITHMS
from labelproof.training.configuration import Configuration
from labelproof.training.distributed import launched
from labelproof.training.runner import Event
from labelproof.verbs.inputs import READING, Request
from labelproof.verbs.train import TrainPlan, choose_configuration, default_folder

_OF_REQUEST = (*READING, "device", "compile", "workers", "human_labels", "on_error")
"""Options that are about the data and the device, and no setting of the configuration."""


def train(
    data: Annotated[
        str | None,
        option(
            "A dataset's name (digits, mnist, cifar10, ...; see 'labelproof data list') or "
            "the path of your own. Required, here or in --config.",
            default=False,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        option(
            "Label noise to add: symmetric:RATE, asymmetric:RATE, pair:RATE, "
            "instance:RATE or human:WHICH. With --preset paper, as in the authors' code.",
            default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        option(
            "The loss, such as ce, 'gce(q=0.7)' or ce+sr; 'labelproof losses' lists "
            "all. With --preset paper, a name from the paper's tables takes its settings.",
            default="ce; CE+SR with --preset paper",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        option(
            "paper: the paper's settings for mnist, cifar10, cifar100 or webvision.", default=False
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option(
            "A TOML file of settings (batch_size = 64), such as --dry-run prints.", default=False
        ),
    ] = None,
    assign: Annotated[
        list[str] | None,
        option(
            "Any setting that --config can hold, such as momentum=0.8 or optimizer=adamw; "
            "repeatable.",
            "--set",
            metavar="NAME=VALUE",
            default=False,
        ),
    ] = None,
    network: options.Network = None,
    epochs: options.Epochs = None,
    label: options.Label = None,
    labels: options.Labels = None,
    drop: options.Drop = None,
    seed: options.Seed = None,
    device: options.Device = "auto",
    output: Annotated[
        Path | None,
        option("The run's folder.", default="labelproof-runs/NAME-OF-THE-CONFIGURATION"),
    ] = None,
    fresh: options.Fresh = False,
    batch_size: options.BatchSize = None,
    learning_rate: options.LearningRate = None,
    augmentation: options.Augmentation = None,
    algorithm: Annotated[
        str | None,
        option(
            f"The algorithm: {', '.join(ALGORITHMS)}, with optional arguments.",
            default=False,
            more=True,
        ),
    ] = None,
    validation: options.Validation = None,
    loss_file: options.LossFiles = None,
    group: options.Group = None,
    decimal: options.Decimal = ".",
    thousands: options.Thousands = None,
    compile: Annotated[
        bool | None,
        option(
            "Compile network and loss, which takes a minute at the start.",
            "--compile/--no-compile",
            default="on CUDA",
            more=True,
        ),
    ] = None,
    workers: options.Workers = None,
    checkpoint_seconds: Annotated[
        float,
        option(
            "Seconds between checkpoints; 0 writes one after every epoch.",
            min=0,
            metavar="SECONDS",
            more=True,
        ),
    ] = 30.0,
    data_root: options.Root = None,
    human_labels: options.HumanLabels = None,
    skip_unreadable: options.SkipUnreadable = False,
    tensorboard: Annotated[
        bool,
        option("Write TensorBoard event files to the folder.", "--tensorboard", more=True),
    ] = False,
    dry_run: Annotated[
        bool,
        option("Train nothing; print all settings as a file for --config.", "--dry-run", more=True),
    ] = False,
) -> None:
    """Train a network with every setting under your control, and keep a record of the run.

    The paper's setting, sparse regularization on CIFAR-10 with 60% wrong labels:

        labelproof train --data cifar10 --noise symmetric:0.6 --loss ce+sr --preset paper

    A quick first run:

        labelproof train --data digits --noise symmetric:0.4 --loss ce+sr --epochs 20

    Your own data, with reviewed labels:

        labelproof train --data photos/ --labels reviewed.csv --loss ce+sr

    After Ctrl-C or a crash, the same command resumes from the last checkpoint, with the same
    result. A finished run is not trained again, and a run never resumes on different data or
    labels. Options override --set, which overrides --config, which overrides --preset. Several
    GPUs:

        torchrun --nproc-per-node 4 -m labelproof train --data cifar10
    """
    given = options.arguments(**locals())
    values = read_settings(config) if config is not None else {}
    values |= read_assignments(assign or ())
    settings = [field.name for field in fields(Configuration)]
    values |= {name: given[name] for name in settings if given.get(name) is not None}
    reporter = Terminal(Console(quiet=launched() and os.environ["RANK"] != "0"))
    asked = {name: given[name] for name in _OF_REQUEST}
    request = Request(values.get("data"), progress=reporter, **asked)
    configuration = choose_configuration(values, preset=preset, look=lambda: request.dataset)
    folder = output if output is not None else default_folder(configuration, labels)
    plan = TrainPlan(configuration, request, folder, fresh, checkpoint_seconds)
    quiet = reporter.console.quiet
    slow = configuration.network == LARGE and request.slow
    if slow and "network" not in values and plan.finished is None and not quiet:
        warn(
            f"on a CPU {LARGE} may take hours; 'labelproof fit' chooses a network that suits a "
            "CPU, as --network 'cnn8(width=32)' --augmentation resized-crop:48,flip does"
        )
    if dry_run:
        plan.preview()
        return
    if tensorboard and not quiet:
        reporter.callback = Scalars(folder)
    with ending(reporter):
        plan.run()


class Scalars:
    """Writes each epoch's metrics, under `tensorboard/` of the run's folder.

    Raises:
        ImportError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path):
        if importlib.util.find_spec("tensorboard") is None:
            raise ImportError(
                "--tensorboard: expected the package tensorboard, which is not installed; get it "
                "with pip install 'labelproof[tensorboard]'"
            )
        self.folder = folder / "tensorboard"
        self._writer: Any = None

    def __call__(self, event: Event | str) -> None:
        """Take in what happens to the run."""
        if isinstance(event, str):
            return
        if event.kind == "started":
            from torch.utils.tensorboard import SummaryWriter

            # What an earlier course wrote of this epoch and later ones is dropped.
            self._writer = SummaryWriter(str(self.folder), purge_step=event.value)
        elif event.kind == "epoch":
            epoch = int(event.value["epoch"])
            for name, value in event.value.items():
                if name != "epoch":
                    self._writer.add_scalar(name, value, epoch)
            self._writer.flush()
        elif event.kind != "notice" and self._writer is not None:
            self._writer.close()
