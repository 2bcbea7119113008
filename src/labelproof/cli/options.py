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
MORE = "More options"
_FITS = "chosen by the data"

LABELS = (
    "A table with the columns sample and label that replaces the data's own labels, such as "
    "'labelproof review' exports; samples with an empty label are left out."
)


def _option(
    help: str, *flags: str, default: str | bool = True, more: bool = False, **rest: Any
) -> Any:
    panel = MORE if more else None
    return typer.Option(*flags, help=help, show_default=default, rich_help_panel=panel, **rest)


Label = Annotated[
    str | None,
    _option("The label column of a table.", default="the one called label, class, target, ..."),
]
Labels = Annotated[Path | None, _option(LABELS, "--labels", default="the data's own")]
Drop = Annotated[
    list[str] | None,
    _option(
        "A column of a table to ignore; repeatable.", "--drop", metavar="COLUMN", default=False
    ),
]
Group = Annotated[
    str | None,
    _option(
        "A column that says which samples belong together, such as a patient: they are never split "
        "apart. The column is not a feature.",
        metavar="COLUMN",
        default=False,
        more=True,
    ),
]
Decimal = Annotated[
    str, _option("The decimal separator of numbers in a table, such as ',' for 3,14.", more=True)
]
Thousands = Annotated[
    str | None,
    _option(
        "The thousands separator of numbers in a table, such as '.' for 1.000.",
        default=False,
        more=True,
    ),
]
Root = Annotated[
    Path | None,
    _option(
        "Folder of the published datasets.",
        "--data-root",
        envvar="LABELPROOF_DATA",
        default="the user's cache folder",
        more=True,
    ),
]
Network = Annotated[
    str | None,
    _option(
        f"{NETWORKS}, with arguments such as 'cnn4(width=12)'; timm/NAME and "
        "torchvision/NAME are pretrained; package.module:factory is your own and runs your code.",
        default=_FITS,
    ),
]
Epochs = Annotated[int | None, _option("Passes over the training examples.", default=_FITS)]
BatchSize = Annotated[int | None, _option("Examples per step.", default=_FITS, more=True)]
LearningRate = Annotated[
    float | None, _option("Learning rate of the first epoch.", default=_FITS, more=True)
]
Augmentation = Annotated[
    str | None,
    _option(
        "Augmentation of training images: crop:PIXELS, flip, rotation:DEGREES, resized-crop:SIDE, "
        "jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE joined by commas; or none.",
        default=_FITS,
        more=True,
    ),
]
Rehearsal = Annotated[
    str | None,
    _option(
        "Label noise to add first, such as symmetric:0.4, to test on data with correct labels.",
        default=False,
        more=True,
    ),
]
Seed = Annotated[
    int | None,
    _option("Seed of the noise, the weights, the order of examples and augmentation.", default="1"),
]
Device = Annotated[str, _option("auto (the fastest available), cpu, cuda, cuda:1 or mps.")]
Fresh = Annotated[bool, _option("Remove what is in --output and start over.", "--fresh")]
Workers = Annotated[
    int | None,
    _option(
        "Processes that decode images that do not fit in memory.",
        min=0,
        metavar="N",
        default="one per core, at most 16",
        more=True,
    ),
]
HumanLabels = Annotated[
    Path | None,
    _option("The file of human labels, for --noise human:WHICH.", default=False, more=True),
]
ImageMemory = Annotated[
    int | None,
    _option(
        "Megabytes for decoded images; beyond that, images are decoded again in every epoch.",
        min=0,
        metavar="N",
        default="400, 4000 with a GPU",
        more=True,
    ),
]
Strict = Annotated[
    bool,
    _option(
        "Refuse data with unusable examples instead of leaving them out.",
        "--strict",
        more=True,
    ),
]
SkipUnreadable = Annotated[
    bool,
    _option(
        "Leave out unreadable images and rows without a label, with a warning.",
        "--skip-unreadable",
        more=True,
    ),
]
Factory = Annotated[
    str | None,
    _option(
        "Name the run's own network to allow its code to run.",
        "--network",
        metavar="PACKAGE.MODULE:FACTORY",
        default="no code runs",
        more=True,
    ),
]
