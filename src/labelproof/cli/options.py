"""The flags of `labelproof train` that set what is trained: one for each setting of a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from labelproof.models.spec import NETWORKS
from labelproof.training.algorithms.spec import ALGORITHMS
from labelproof.training.configuration import (
    CLASS_WEIGHTS,
    L1_ON,
    OPTIMIZERS,
    PRECISIONS,
    Configuration,
)

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Configuration)}


def _setting(name: str, help: str, *flags: str, default: str | bool | None = None) -> Any:
    shown = str(_DEFAULTS[name]).lower() if default is None else default
    return typer.Option(*flags, help=help, show_default=shown, rich_help_panel="What is trained")


Data = Annotated[
    str | None,
    _setting(
        "data",
        "A dataset's name (digits, mnist, cifar10, ...; see 'labelproof data list') or the path of "
        "your own: a folder of images, a table, a file of arrays. Has to be given, here or in "
        "--config.",
        default=False,
    ),
]
Noise = Annotated[
    str | None,
    _setting(
        "noise",
        "Wrong labels to put on it: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE, "
        "human:WHICH or none, such as symmetric:0.6. With --preset paper, as the authors' code "
        "puts them: exact counts on CIFAR.",
    ),
]
LossText = Annotated[
    str | None,
    _setting(
        "loss",
        "What is minimised, such as ce, 'gce(q=0.7)' or ce+sr; 'labelproof losses' lists all. With "
        "--preset paper a name of the paper's tables, in any case and without arguments (CE+SR, "
        "gce, APL), stands for the paper's settings of it for that dataset.",
        default="ce; CE+SR with --preset paper",
    ),
]
AlgorithmText = Annotated[
    str | None,
    _setting("algorithm", f"How it is learned: {', '.join(ALGORITHMS)}, with arguments."),
]
NetworkText = Annotated[
    str | None,
    _setting(
        "network",
        f"{', '.join(NETWORKS)}, with arguments such as 'cnn4(width=12)'; or "
        "package.module:factory of your own, whose code is run.",
        default="one that fits the images' size",
    ),
]
Epochs = Annotated[int | None, _setting("epochs", "Passes over the training examples.")]
BatchSize = Annotated[int | None, _setting("batch_size", "Examples in a step, over all devices.")]
RecipeNetwork = Annotated[
    str | None,
    _setting(
        "network",
        "Such as cnn8, resnet18-imagenet or 'mlp(hidden=64)'; timm/NAME or torchvision/NAME start "
        "from pretrained weights; package.module:factory is a network of your own, whose code is "
        "run.",
        default="one that fits the data",
    ),
]
RecipeAugmentation = Annotated[
    str | None,
    _setting(
        "augmentation",
        "What is done to training images, such as crop:4,flip or resized-crop:224,flip; or none.",
        default="what fits the data",
    ),
]
RecipeEpochs = Annotated[
    int | None,
    _setting("epochs", "Passes over the training examples.", default="what fits the data"),
]
RecipeBatchSize = Annotated[
    int | None, _setting("batch_size", "Examples in a step.", default="what fits the data")
]
RecipeLearningRate = Annotated[
    float | None, _setting("learning_rate", "Of the first epoch.", default="what fits the data")
]
OptimizerName = Annotated[str | None, _setting("optimizer", f"{' or '.join(OPTIMIZERS)}.")]
LearningRate = Annotated[float | None, _setting("learning_rate", "Of the first epoch.")]
ScheduleText = Annotated[
    str | None,
    _setting(
        "schedule",
        "How the learning rate moves: cosine (to 0), cosine:0.001 (to that rate), "
        "exponential:0.97 (times that each epoch), step:30:0.1 (times 0.1 every 30 epochs) or "
        "constant.",
    ),
]
Momentum = Annotated[float | None, _setting("momentum", "Of SGD, from 0 to 1.")]
Nesterov = Annotated[
    bool | None,
    _setting("nesterov", "Whether SGD looks ahead.", "--nesterov/--no-nesterov"),
]
WeightDecay = Annotated[float | None, _setting("weight_decay", "Of all parameters, such as 1e-4.")]
ClipNorm = Annotated[
    float | None, _setting("clip_norm", "Largest norm of a gradient; 0 leaves it as it is.")
]
AugmentationText = Annotated[
    str | None,
    _setting(
        "augmentation",
        "What is done to training images: words of crop:PIXELS, flip, rotation:DEGREES, "
        "resized-crop:SIDE, jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE joined by commas, such as "
        "crop:4,flip; or none.",
        default="none; resized-crop:224,flip for images above 32 pixels",
    ),
]
Precision = Annotated[
    str | None,
    _setting(
        "precision",
        f"{', '.join(PRECISIONS)}: how the network computes; auto is bf16 on CUDA and float32 "
        "elsewhere.",
    ),
]
Average = Annotated[
    float | None,
    _setting(
        "average",
        "Decay of a moving average of the weights, such as 0.999, which is then what is evaluated "
        "and kept; 0 for none.",
    ),
]
ImbalanceText = Annotated[
    str | None, _setting("imbalance", "Examples to leave out, such as long-tailed:0.01; or none.")
]
Seed = Annotated[
    int | None,
    _setting("seed", "Of the noise, the weights, the order of the examples and augmentation."),
]
Validation = Annotated[
    float | None,
    _setting(
        "validation",
        "Share of the training examples to hold out; how many of their given labels are predicted "
        "is then told after every epoch.",
    ),
]
ClassWeight = Annotated[
    str | None,
    _setting(
        "class_weight",
        f"{' or '.join(CLASS_WEIGHTS)}: whether every class counts the same, however many examples "
        "it has.",
    ),
]
L1 = Annotated[
    float | None,
    _setting("l1", "Weight of an l1 penalty on the parameters, such as 5e-5; 0 for none."),
]
L1On = Annotated[
    str | None,
    _setting(
        "l1_on",
        f"{' or '.join(L1_ON)}: whether the l1 penalty is on every parameter or leaves out biases "
        "and batch norm's.",
    ),
]
L1BeforeClipping = Annotated[
    bool | None,
    _setting(
        "l1_before_clipping",
        "Whether the l1 penalty's gradient is clipped with the loss's.",
        "--l1-before-clipping/--l1-after-clipping",
    ),
]
LABELS = (
    "A table with the columns sample and label whose labels stand in place of those that the data "
    "came with, such as 'labelproof review' exports; samples with an empty label are left out."
)
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        help=LABELS,
        show_default="the data's own",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="The column with the labels, for a table of features or of images.",
        show_default="the one called label, class, target, ...",
        rich_help_panel="What is trained",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="A column of a table that is not a feature; may be given repeatedly.",
        show_default="none",
        rich_help_panel="What is trained",
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        help="The decimal point of numbers in a table, such as ',' for 3,14.",
        rich_help_panel="What is trained",
    ),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        help="What stands between thousands in a table, such as '.' for 1.000.",
        show_default="nothing",
        rich_help_panel="What is trained",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A column of a table that says which samples belong together, such as a patient or a "
        "video: they stay on the same side of every split. It is not a feature.",
        show_default="only copies stay together",
        rich_help_panel="What is trained",
    ),
]
HOW = "How it is carried out"
Device = Annotated[
    str,
    typer.Option(
        rich_help_panel=HOW, help="auto takes the fastest there is; or cpu, cuda, cuda:1, mps."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=HOW,
        min=0,
        help="Processes that decode images which do not lie in memory; 0 for none.",
        show_default="one for each core, at most 16",
    ),
]
HumanLabels = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=HOW,
        help="The file of human labels, for --noise human:WHICH.",
        show_default="none",
    ),
]
ImageMemory = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=HOW,
        min=0,
        help="Megabytes that images may take once they are decoded and made small; where they "
        "would take more, they are decoded anew in every epoch.",
        show_default="400, 4000 with a GPU",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        rich_help_panel=HOW,
        help="Refuse data of which some examples cannot be used, instead of leaving them out.",
    ),
]
Rehearsal = Annotated[
    str | None,
    typer.Option(
        help="Wrong labels to put on it first, such as symmetric:0.4: a rehearsal on data "
        "whose labels are right.",
        show_default="none",
        rich_help_panel="What is trained",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="paper: the paper's settings for mnist, cifar10, cifar100 or webvision.",
        show_default="none",
        rich_help_panel="What is trained",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file of settings by these names (batch_size = 64), such as --dry-run prints.",
        show_default="none",
        rich_help_panel="What is trained",
    ),
]
Factory = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="PACKAGE.MODULE:FACTORY",
        help="Allow the code of the run's own network to be run, by naming it.",
        show_default="no code is run",
    ),
]
