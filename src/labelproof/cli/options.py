"""Options that several commands share; rare ones are in a panel of their own in the help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

# Nothing of the library is imported here: torch would keep who asks for help waiting.
NETWORKS = (
    "cnn4, cnn8, resnet18, resnet34, resnet50, resnet18-imagenet, resnet34-imagenet, "
    "resnet50-imagenet, mlp"
)
_FITS = "chosen by the data"

LABELS = (
    "A table with the columns sample and label that replaces the data's own labels, such as "
    "'labelproof review' exports; samples with an empty label are left out."
)


def option(
    help: str, *flags: str, default: str | bool = True, more: bool = False, **rest: Any
) -> Any:
    """An option of a command; `default` is what the help shows, `more` the panel of rare ones."""
    panel = "More options" if more else None
    return typer.Option(*flags, help=help, show_default=default, rich_help_panel=panel, **rest)


Run = Annotated[Path, typer.Argument(metavar="RUN", help="The run's folder.")]
Root = Annotated[
    Path | None,
    option(
        "Folder of the published datasets.",
        "--data-root",
        default="the user's cache folder",
        more=True,
        envvar="LABELPROOF_DATA",
    ),
]
Label = Annotated[
    str | None,
    option("The label column of a table.", default="the one called label, class, target, ..."),
]
Labels = Annotated[Path | None, option(LABELS, "--labels", default="the data's own")]
Drop = Annotated[
    list[str] | None,
    option("A column of a table to ignore; repeatable.", "--drop", metavar="COLUMN", default=False),
]
Group = Annotated[
    str | None,
    option(
        "A column that says which samples belong together, such as a patient: they are never split "
        "apart. The column is not a feature.",
        metavar="COLUMN",
        default=False,
        more=True,
    ),
]
Decimal = Annotated[
    str, option("The decimal separator of numbers in a table, such as ',' for 3,14.", more=True)
]
Thousands = Annotated[
    str | None,
    option(
        "The thousands separator of numbers in a table, such as '.' for 1.000.",
        default=False,
        more=True,
    ),
]
Network = Annotated[
    str | None,
    option(
        f"{NETWORKS}, with arguments such as 'cnn4(width=12)'; timm/NAME and "
        "torchvision/NAME are pretrained; package.module:factory is your own and runs your code.",
        default=_FITS,
    ),
]
Epochs = Annotated[int | None, option("Passes over the training examples.", default=_FITS)]
BatchSize = Annotated[int | None, option("Examples per step.", default=_FITS, more=True)]
LearningRate = Annotated[
    float | None, option("Learning rate of the first epoch.", default=_FITS, more=True)
]
Augmentation = Annotated[
    str | None,
    option(
        "Augmentation of training images: crop:PIXELS, flip, rotation:DEGREES, resized-crop:SIDE, "
        "jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE joined by commas; or none.",
        default=_FITS,
        more=True,
    ),
]
Rehearsal = Annotated[
    str | None,
    option(
        "Label noise to add first, such as symmetric:0.4, to test on data with correct labels.",
        default=False,
        more=True,
    ),
]
Seed = Annotated[
    int | None,
    option("Seed of the noise, the weights, the order of examples and augmentation.", default="1"),
]
Device = Annotated[str, option("auto (the fastest available), cpu, cuda, cuda:1 or mps.")]
Fresh = Annotated[bool, option("Remove what is in --output and start over.", "--fresh")]
Workers = Annotated[
    int | None,
    option(
        "Processes that decode images that do not fit in memory.",
        min=0,
        metavar="N",
        default="one per core, at most 16",
        more=True,
    ),
]
HumanLabels = Annotated[
    Path | None,
    option("The file of human labels, for --noise human:WHICH.", default=False, more=True),
]
ImageMemory = Annotated[
    int | None,
    option(
        "Megabytes for decoded images; beyond that, images are decoded again in every epoch.",
        min=0,
        metavar="N",
        default="400, 4000 with a GPU",
        more=True,
    ),
]
Strict = Annotated[
    bool,
    option(
        "Refuse data with unusable examples instead of leaving them out.",
        "--strict",
        more=True,
    ),
]
SkipUnreadable = Annotated[
    bool,
    option(
        "Leave out unreadable images and rows without a label, with a warning.",
        "--skip-unreadable",
        more=True,
    ),
]
Factory = Annotated[
    str | None,
    option(
        "Name the run's own network to allow its code to run.",
        "--network",
        metavar="PACKAGE.MODULE:FACTORY",
        default="no code runs",
        more=True,
    ),
]
Validation = Annotated[
    float | None,
    option(
        "Share of the training examples to hold out for validation.",
        default="0.1 with fit, 0 with train",
        more=True,
    ),
]
OpenPage = Annotated[bool, option("Open the page in a browser.", "--open/--no-open")]
Records = Annotated[Path, option("Folder of the records, one small file per run.")]
Methods = Annotated[
    str | None,
    option(
        "Rows or lines, separated by spaces or commas, such as 'CE CE+SR'; also a loss as text, "
        "such as 'gce(q=0.5)+sr'.",
        default="the paper's",
    ),
]
Columns = Annotated[
    str | None, option("Columns, such as 0.4,0.8 or '0.4 0.8'.", default="the paper's")
]
PaperData = Annotated[
    str | None, option("mnist, cifar10, cifar100 or webvision.", default="the only one")
]
