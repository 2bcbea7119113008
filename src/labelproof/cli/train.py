"""`labelproof train`: train a network on a dataset, with any noise and loss."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console

from labelproof.cli.console import carry_out, terminal
from labelproof.cli.options import read_assignments, read_settings, takes
from labelproof.training.execution import launched
from labelproof.training.runner import Event
from labelproof.verbs.inputs import Request
from labelproof.verbs.progress import Callback
from labelproof.verbs.train import TrainPlan, choose_configuration, default_folder

_SETTINGS = (
    *("noise", "loss", "network", "epochs", "seed", "batch_size", "learning_rate"),
    *("augmentation", "algorithm", "validation"),
)


@takes("train", settings=_SETTINGS)
def train(
    *,
    data: str | None = None,
    preset: str | None = None,
    config: Path | None = None,
    assign: list[str] | None = None,
    output: Path | None = None,
    fresh: bool = False,
    checkpoint_seconds: float = 30.0,
    loss_file: list[Path] | None = None,
    tensorboard: bool = False,
    dry_run: bool = False,
    **given: Any,
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

    Args:
        data: A dataset's name (digits, mnist, cifar10, ...; see 'labelproof data list') or the path
            of your own. Required, here or in --config.
        noise: Label noise to add: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE or
            human:WHICH. With --preset paper, as in the authors' code.
        loss: The loss, such as ce, the default, 'gce(q=0.7)' or ce+sr; 'labelproof losses' lists
            all. With --preset paper, a name from the paper's tables takes its settings; CE+SR by
            default.
        epochs: Passes over the training examples; 50 by default, with a preset the paper's.
        preset: paper: the paper's settings for mnist, cifar10, cifar100 or webvision.
        config: A TOML file of settings (batch_size = 64), such as --dry-run prints.
        assign: Any setting that --config can hold, NAME=VALUE, such as momentum=0.8 or
            optimizer=adamw.
        validation: Share of the training examples to hold out for validation; 0 by default.
        output: The run's folder; by default labelproof-runs/NAME-OF-THE-CONFIGURATION.
        checkpoint_seconds: Seconds between checkpoints; 0 writes one after every epoch.
        tensorboard: Write TensorBoard event files to the folder.
        dry_run: Train nothing; print all settings as a file for --config.
    """
    values = read_settings(config) if config is not None else {}
    values |= read_assignments(assign or ())
    options = {"data": data} | {name: given.pop(name) for name in _SETTINGS}
    values |= {name: value for name, value in options.items() if value is not None}
    reporter = terminal(Console(quiet=launched() and os.environ["RANK"] != "0"))
    request = Request(values.get("data"), progress=reporter, **given)
    configuration = choose_configuration(values, preset=preset, look=lambda: request.dataset)
    folder = output if output is not None else default_folder(configuration, given["labels"])
    plan = TrainPlan(configuration, request, folder, fresh, checkpoint_seconds)
    if tensorboard and not reporter.console.quiet and not dry_run:
        reporter.callback = write_scalars(folder / "tensorboard")
    carry_out(plan, reporter, dry_run=dry_run)


def write_scalars(folder: Path) -> Callback:
    """A callback that writes the metrics of each epoch for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        install = "pip install 'labelproof[tensorboard]'"
        raise ImportError(f"--tensorboard: TensorBoard is not installed: {install}") from None
    writers: list[SummaryWriter] = []

    def take(event: Event | str) -> None:
        if isinstance(event, Event) and event.kind == "started":
            # A resumed run replaces what was written about this epoch and later ones.
            writers.append(SummaryWriter(str(folder), purge_step=event.value))
        elif isinstance(event, Event) and event.kind == "epoch":
            for name, value in event.value.items():
                if name != "epoch":
                    writers[-1].add_scalar(name, value, int(event.value["epoch"]))
            writers[-1].flush()

    return take
