"""`labelproof train`: train a network on a dataset, with whatever noise and loss."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from labelproof.cli import options
from labelproof.cli.arguments import LossFiles
from labelproof.cli.console import Terminal, ending, warn
from labelproof.cli.data import Root
from labelproof.cli.settings import choose_configuration, format_settings, read_settings
from labelproof.data.dataset import Dataset
from labelproof.data.load import Reading
from labelproof.fitting.recipe import LARGE
from labelproof.training.distributed import launched
from labelproof.training.execution import choose_execution
from labelproof.verbs.inputs import check_labels_file
from labelproof.verbs.summaries import preview
from labelproof.verbs.train import TrainPlan, default_folder

__all__ = ["Scalars", "train"]


def train(
    data: options.Data = None,
    label: options.Label = None,
    labels: options.Labels = None,
    drop: options.Drop = None,
    group: options.Group = None,
    decimal: options.Decimal = ".",
    thousands: options.Thousands = None,
    noise: options.Noise = None,
    loss: options.LossText = None,
    loss_file: LossFiles = None,
    preset: options.Preset = None,
    config: options.Config = None,
    network: options.NetworkText = None,
    epochs: options.Epochs = None,
    batch_size: options.BatchSize = None,
    optimizer: options.OptimizerName = None,
    learning_rate: options.LearningRate = None,
    schedule: options.ScheduleText = None,
    momentum: options.Momentum = None,
    nesterov: options.Nesterov = None,
    weight_decay: options.WeightDecay = None,
    clip_norm: options.ClipNorm = None,
    augmentation: options.AugmentationText = None,
    algorithm: options.AlgorithmText = None,
    precision: options.Precision = None,
    average: options.Average = None,
    imbalance: options.ImbalanceText = None,
    seed: options.Seed = None,
    validation: options.Validation = None,
    class_weight: options.ClassWeight = None,
    l1: options.L1 = None,
    l1_on: options.L1On = None,
    l1_before_clipping: options.L1BeforeClipping = None,
    device: options.Device = "auto",
    compile: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile",
            rich_help_panel=options.HOW,
            help="Whether network and loss are compiled, which takes a minute at the start.",
            show_default="on CUDA",
        ),
    ] = None,
    workers: options.Workers = None,
    output: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.HOW,
            help="The run's folder.",
            show_default="labelproof-runs/NAME-OF-THE-CONFIGURATION, with --labels and their name",
        ),
    ] = None,
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            rich_help_panel=options.HOW,
            help="Time between two checkpoints; longer where one takes so long that it would cost "
            "more than a hundredth of the time. 0 writes one after every epoch.",
        ),
    ] = 30.0,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            rich_help_panel=options.HOW,
            help="Remove the run that is in the folder; start anew.",
        ),
    ] = False,
    data_root: Root = None,
    human_labels: options.HumanLabels = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option(
            "--skip-unreadable",
            rich_help_panel=options.HOW,
            help="Leave out images that cannot be read and rows without a label, and say so.",
        ),
    ] = False,
    tensorboard: Annotated[
        bool,
        typer.Option(
            "--tensorboard",
            rich_help_panel=options.HOW,
            help="Write TensorBoard's event files into the folder.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            rich_help_panel=options.HOW,
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


class Scalars:
    """Writes each epoch's metrics, under `tensorboard/` of the run's folder.

    Args:
        folder: The run's.

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

    def start(self, epoch: int) -> None:
        """Begin; what was written of this epoch and later ones by an earlier course is dropped."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self.folder), purge_step=epoch)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Write an epoch."""
        epoch = int(metrics["epoch"])
        for name, value in metrics.items():
            if name != "epoch":
                self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def close(self) -> None:
        """End the files."""
        if self._writer is not None:
            self._writer.close()
