"""Options that several commands share; rare ones stand in a panel of their own in the help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labelproof.models.text import NETWORKS

MORE = "More options"
_FITS = "what fits the data"

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
        "A column that is not a feature; repeatable.", "--drop", metavar="COLUMN", default=False
    ),
]
Group = Annotated[
    str | None,
    _option(
        "A column that says which samples belong together, such as a patient: they are never split "
        "apart. It is not a feature.",
        metavar="COLUMN",
        default=False,
        more=True,
    ),
]
Decimal = Annotated[
    str, _option("The decimal point of numbers in a table, such as ',' for 3,14.", more=True)
]
Thousands = Annotated[
    str | None,
    _option(
        "The separator of thousands in a table, such as '.' for 1.000.", default=False, more=True
    ),
]
Network = Annotated[
    str | None,
    _option(
        f"{', '.join(NETWORKS)}, with arguments such as 'cnn4(width=12)'; timm/NAME and "
        "torchvision/NAME are pretrained; package.module:factory is your own, whose code is run.",
        default=_FITS,
    ),
]
Epochs = Annotated[int | None, _option("Passes over the training examples.", default=_FITS)]
BatchSize = Annotated[int | None, _option("Examples in a step.", default=_FITS, more=True)]
LearningRate = Annotated[float | None, _option("Of the first epoch.", default=_FITS, more=True)]
Augmentation = Annotated[
    str | None,
    _option(
        "What is done to training images: crop:PIXELS, flip, rotation:DEGREES, resized-crop:SIDE, "
        "jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE joined by commas; or none.",
        default=_FITS,
        more=True,
    ),
]
Rehearsal = Annotated[
    str | None,
    _option(
        "Wrong labels to put on the data first, such as symmetric:0.4: a rehearsal on data whose "
        "labels are right.",
        default=False,
        more=True,
    ),
]
Seed = Annotated[
    int | None, _option("Of the noise, the weights, the order and augmentation.", default="1")
]
Device = Annotated[str, _option("auto takes the fastest there is; or cpu, cuda, cuda:1, mps.")]
Fresh = Annotated[bool, _option("Remove what is in --output first, and start anew.", "--fresh")]
Workers = Annotated[
    int | None,
    _option(
        "Processes that decode images which do not fit in memory.",
        min=0,
        metavar="N",
        default="one for each core, at most 16",
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
        "Megabytes that decoded images may take; beyond, they are decoded anew in every epoch.",
        min=0,
        metavar="N",
        default="400, 4000 with a GPU",
        more=True,
    ),
]
Strict = Annotated[
    bool,
    _option(
        "Refuse data of which some examples cannot be used, instead of leaving them out.",
        "--strict",
        more=True,
    ),
]
SkipUnreadable = Annotated[
    bool,
    _option(
        "Leave out images that cannot be read and rows without a label, and say so.",
        "--skip-unreadable",
        more=True,
    ),
]
Factory = Annotated[
    str | None,
    _option(
        "Allow the code of the run's own network to be run, by naming it.",
        "--network",
        metavar="PACKAGE.MODULE:FACTORY",
        default="no code is run",
        more=True,
    ),
]
