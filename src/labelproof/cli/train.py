"""`labelproof train`: train a network on a dataset, with whatever noise and loss."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from labelproof.cli import flags
from labelproof.cli.carrying import carry_out, take_over
from labelproof.cli.data import Root
from labelproof.cli.lines import say, told, warn
from labelproof.cli.loss_file import LossFiles
from labelproof.cli.outcome import already_finished, preview, summary
from labelproof.cli.reading import check_labels_file
from labelproof.cli.scalars import Scalars
from labelproof.cli.settings import choose_configuration, format_settings, read_settings
from labelproof.data.dataset import Dataset
from labelproof.data.reading import Reading
from labelproof.data.table_files import table_stem
from labelproof.fitting.attempts import Attempts
from labelproof.fitting.recipe import LARGE
from labelproof.fitting.whereabouts import note_places
from labelproof.noise import parse_noise
from labelproof.training.begun_on import mark_data, refuse_other_data
from labelproof.training.configuration import Configuration
from labelproof.training.distributed import launched, share_gradients, taking_part
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.execution import choose_execution
from labelproof.training.folder import RunFolder
from labelproof.training.pack import Event, Job, train_runs
from labelproof.training.saved import ATTEMPTS
from labelproof.training.stopping import StopRequest

__all__ = ["train"]


def train(
    data: flags.Data = None,
    label: flags.Label = None,
    labels: flags.Labels = None,
    drop: flags.Drop = None,
    group: flags.Group = None,
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

    asked = Reading(label, labels, tuple(drop or ()), group, data_root)

    @functools.cache
    def dataset() -> Dataset:
        with told():
            return asked.load(values["data"], on_error="skip" if skip_unreadable else "raise")

    configuration = choose_configuration(values, preset=preset, look=dataset)
    _check_human(configuration, human_labels)
    execution = choose_execution(device, compile=compile, workers=workers)
    # With corrected labels it is another folder: the run on the others stays, to be compared.
    name = configuration.name if labels is None else f"{configuration.name}-{table_stem(labels)}"
    folder = output if output is not None else Path("labelproof-runs") / name
    console = Console(quiet=launched() and os.environ["RANK"] != "0")

    @functools.cache
    def examples() -> Examples:
        return _choose(configuration, dataset(), human_labels)

    record = None if fresh else RunFolder(folder).record(configuration)
    if not fresh:
        # Before the processes meet, so that each of them refuses and none waits for another.
        refuse_other_data(folder, lambda: mark_data(configuration, examples()))
    if record is not None and not dry_run:
        say(console, already_finished(folder, record))
        return
    chosen = examples()
    slow = configuration.network == LARGE and execution.device.type == "cpu"
    if slow and "network" not in values and not console.quiet:
        warn(
            f"on a CPU {LARGE} may take hours; 'labelproof fit' chooses a network that suits a "
            "CPU, as --network 'cnn8(width=32)' --augmentation resized-crop:48,flip does"
        )
    if dry_run:
        typer.echo(format_settings(configuration))
        typer.echo(preview(configuration, chosen, execution, folder, fresh=fresh), nl=False)
        return
    reading = Attempts(
        asked.found_in(chosen.dataset).as_values(),
        configuration.loss,
        places=note_places(configuration.data, labels, folder),
    )
    scalars = Scalars(folder) if tensorboard else None
    with StopRequest() as stop, taking_part(execution) as taken:
        take_over(folder, taken, fresh=fresh)
        events = train_runs(
            [Job(configuration, folder)],
            taken,
            load=lambda _: chosen,
            checkpoint_seconds=checkpoint_seconds,
            stop=stop,
            wrap=share_gradients if taken.world_size > 1 else None,
        )
        code = carry_out(
            _noting(events, folder, reading) if taken.rank == 0 else events,
            Job(configuration, folder),
            taken,
            console=console,
            stop=stop,
            scalars=scalars if taken.rank == 0 else None,
            finish=lambda record: summary(record, chosen, folder),
            fresh=fresh,
        )
    if code:
        raise typer.Exit(code)


def _noting(events: Iterable[Event], folder: Path, reading: Attempts) -> Iterator[Event]:
    """Note in the folder how the data were read, for whoever measures or audits; as `fit` does."""
    for event in events:
        noted = any(reading.asked.values()) or reading.places or (folder / ATTEMPTS).exists()
        if event.kind == "started" and noted:
            reading.write(folder)
        yield event


def _check_human(configuration: Configuration, human: Path | None) -> None:
    """Refuse a file of human labels that would not be looked at, and its lack where it is."""
    noise = parse_noise(configuration.noise)
    if noise.kind == "human" and human is None:
        raise ValueError(f"--human-labels: expected the file with the labels of {noise}, got none")
    if noise.kind != "human" and human is not None:
        raise ValueError(
            f"--human-labels: expected with --noise human:WHICH, got {human} with --noise {noise}; "
            "for labels of your own that stand in place of the data's say --labels"
        )


def _choose(configuration: Configuration, dataset: Dataset, human: Path | None) -> Examples:
    noise = parse_noise(configuration.noise)
    if noise.kind == "instance" and not isinstance(dataset.train.images, np.ndarray):
        raise ValueError(
            f"noise: instance noise looks at all images at once, and those of {dataset.name} are "
            "decoded one by one; save them as arrays first"
        )
    return choose_examples(configuration, dataset, human=human)
