"""`labelproof train`: train a network on a dataset, with whatever noise and loss."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labelproof.cli import flags
from labelproof.cli.data import Root
from labelproof.cli.endings import ending
from labelproof.cli.lines import Terminal, warn
from labelproof.cli.loss_file import LossFiles
from labelproof.cli.scalars import Scalars
from labelproof.cli.settings import choose_configuration, format_settings, read_settings
from labelproof.data.dataset import Dataset
from labelproof.data.load import Reading
from labelproof.fitting.recipe import LARGE
from labelproof.training.distributed import launched
from labelproof.training.execution import choose_execution
from labelproof.verbs.inputs import check_labels_file
from labelproof.verbs.summaries import preview
from labelproof.verbs.train import TrainPlan, default_folder

__all__ = ["train"]


def train(
    data: flags.Data = None,
    label: flags.Label = None,
    labels: flags.Labels = None,
    drop: flags.Drop = None,
    group: flags.Group = None,
    decimal: flags.Decimal = ".",
    thousands: flags.Thousands = None,
    noise: flags.Noise = None,
    loss: flags.LossText = None,
    loss_file: LossFiles = None,
    preset: flags.Preset = None,
    config: flags.Config = None,
    network: flags.NetworkText = None,
    epochs: flags.Epochs = None,
    batch_size: flags.BatchSize = None,
    optimizer: flags.OptimizerName = None,
    learning_rate: flags.LearningRate = None,
    schedule: flags.ScheduleText = None,
    momentum: flags.Momentum = None,
    nesterov: flags.Nesterov = None,
    weight_decay: flags.WeightDecay = None,
    clip_norm: flags.ClipNorm = None,
    augmentation: flags.AugmentationText = None,
    algorithm: flags.AlgorithmText = None,
    precision: flags.Precision = None,
    average: flags.Average = None,
    imbalance: flags.ImbalanceText = None,
    seed: flags.Seed = None,
    validation: flags.Validation = None,
    class_weight: flags.ClassWeight = None,
    l1: flags.L1 = None,
    l1_on: flags.L1On = None,
    l1_before_clipping: flags.L1BeforeClipping = None,
    device: flags.Device = "auto",
    compile: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile",
            rich_help_panel=flags.HOW,
            help="Whether network and loss are compiled, which takes a minute at the start.",
            show_default="on CUDA",
        ),
    ] = None,
    workers: flags.Workers = None,
    output: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=flags.HOW,
            help="The run's folder.",
            show_default="labelproof-runs/NAME-OF-THE-CONFIGURATION, with --labels and their name",
        ),
    ] = None,
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            rich_help_panel=flags.HOW,
            help="Time between two checkpoints; longer where one takes so long that it would cost "
            "more than a hundredth of the time. 0 writes one after every epoch.",
        ),
    ] = 30.0,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            rich_help_panel=flags.HOW,
            help="Remove the run that is in the folder; start anew.",
        ),
    ] = False,
    data_root: Root = None,
    human_labels: flags.HumanLabels = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable",
            rich_help_panel=flags.HOW,
            help="Leave out images that cannot be read and rows without a label, and say so.",
        ),
    ] = False,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            rich_help_panel=flags.HOW,
            help="Write TensorBoard's event files into the folder.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            rich_help_panel=flags.HOW,
            help="Train nothing; print all settings as a file that --config reads.",
        ),
    ] = False,
) -> None:
    """Train a network, also where many labels are wrong, and keep all there is to know about it.

    The paper's setting, sparse regularization on CIFAR-10 with 60% wrong labels:

        labelproof train --data cifar10 --noise symmetric:0.6 --loss ce+sr --preset paper

    Something to try at once:

        labelproof train --data digits --noise symmetric:0.4 --loss ce+sr --epochs 20

    On data of your own, with labels that you have gone through:

        labelproof train --data photos/ --labels reviewed.csv --loss ce+sr

    Stopped in the middle, by Ctrl-C or by a crash, the same command goes on from the last
    checkpoint, to the same result. A run that is finished is not trained again, and one on other
    data or labels is never gone on with. Flags come before the file of --config, that before
    --preset, that before the defaults. Several GPUs:

        torchrun --nproc-per-node 4 -m labelproof train --data cifar10
    """
    given = {
        "data": data,
        "noise": noise,
        "loss": loss,
        "algorithm": algorithm,
        "network": network,
        "epochs": epochs,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "schedule": schedule,
        "momentum": momentum,
        "nesterov": nesterov,
        "weight_decay": weight_decay,
        "clip_norm": clip_norm,
        "augmentation": augmentation,
        "precision": precision,
        "average": average,
        "imbalance": imbalance,
        "seed": seed,
        "validation": validation,
        "class_weight": class_weight,
        "l1": l1,
        "l1_on": l1_on,
        "l1_before_clipping": l1_before_clipping,
    }
    check_labels_file(labels)
    values = read_settings(config) if config is not None else {}
    values |= {name: value for name, value in given.items() if value is not None}

    asked = Reading(label, labels, tuple(drop or ()), group, decimal, thousands, data_root)

    console = Console(quiet=launched() and os.environ["RANK"] != "0")
    reporter = Terminal(console)

    @functools.cache
    def dataset() -> Dataset:
        with reporter.reading():
            return asked.load(values["data"], on_error="skip" if skip_unreadable else "raise")

    configuration = choose_configuration(values, preset=preset, look=dataset)
    folder = output if output is not None else default_folder(configuration, labels)
    execution = choose_execution(device, compile=compile, workers=workers)
    plan = TrainPlan(configuration, dataset, asked, folder, execution, human_labels, fresh)
    slow = configuration.network == LARGE and execution.device.type == "cpu"
    if slow and "network" not in values and plan.finished is None and not console.quiet:
        warn(
            f"on a CPU {LARGE} may take hours; 'labelproof fit' chooses a network that suits a "
            "CPU, as --network 'cnn8(width=32)' --augmentation resized-crop:48,flip does"
        )
    if dry_run:
        _ = plan.finished  # a run of other settings or data is refused
        typer.echo(format_settings(configuration))
        said = preview(configuration, plan.examples, execution, folder, fresh=fresh)
        typer.echo(said, nl=False)
        return
    with ending(reporter):
        plan.run(
            reporter=reporter,
            checkpoint_seconds=checkpoint_seconds,
            sink=Scalars(folder) if tensorboard else None,
        )
