"""Options that several commands share, and how what is typed is read.

Rare ones are in a panel of their own in the help.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

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
    option(
        "The file of human labels, for --noise human:WHICH.",
        default="cifar-n/cifar10n.npz or CIFAR-10_human.pt in --data-root",
        more=True,
    ),
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


def arguments(
    *,
    loss_file: object = None,
    dry_run: bool = False,
    strict: bool | None = None,
    skip_unreadable: bool | None = None,
    **given: Any,
) -> dict[str, Any]:
    """The options of a command as the arguments of its verb.

    >>> arguments(label="kind", strict=False, dry_run=True)
    {'label': 'kind', 'on_error': 'skip'}
    """
    if strict is not None or skip_unreadable is not None:
        given["on_error"] = "raise" if strict or skip_unreadable is False else "skip"
    return given


LOSS_FILES = "LABELPROOF_LOSSES"
"""As `labelproof.losses.names` has it, which imports torch."""


def _make_known(files: list[Path] | None) -> list[Path] | None:
    """Name the files in the environment, where the workers of a command find them, too."""
    if files:
        before = [os.environ[LOSS_FILES]] if os.environ.get(LOSS_FILES) else []
        named = [str(file.expanduser().resolve()) for file in files]
        os.environ[LOSS_FILES] = os.pathsep.join([*named, *before])
        from labelproof.losses.names import known_losses

        known_losses()  # a mistake in a file is told before anything is begun
    return files


LossFiles = Annotated[
    list[Path] | None,
    option(
        "A Python file that defines your own losses, LOSSES = {'mine': MyLoss}. Its code "
        f"runs. Repeatable; {LOSS_FILES} in the environment does the same.",
        "--loss-file",
        metavar="FILE",
        default=False,
        more=True,
        callback=_make_known,
        is_eager=True,
    ),
]
"""Files with losses; commands take it and need not look at it."""


_MOST = 1000
"""More seeds than this are probably a typing mistake."""


def parse_seeds(text: str) -> list[int]:
    """Read seeds.

    >>> parse_seeds("1,2,3")
    [1, 2, 3]
    >>> parse_seeds("1-3,7")
    [1, 2, 3, 7]
    >>> parse_seeds("1,1")
    Traceback (most recent call last):
        ...
    ValueError: seeds: expected different whole numbers such as 1,2,3 or a range such as 1-3, got
    '1,1'
    """
    seeds: list[int] = []
    for part in text.split(","):
        bounds = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        low, high = map(int, bounds.groups()) if bounds else (-1, -1)
        if part.strip().isdecimal():
            low = high = int(part)
        if not 0 <= low <= high < low + _MOST or not set(seeds).isdisjoint(range(low, high + 1)):
            raise ValueError(
                "seeds: expected different whole numbers such as 1,2,3 or a range such as 1-3, "
                f"got {text!r}"
            )
        seeds += range(low, high + 1)
    return seeds


_BETWEEN = re.compile(r"[\s,]+(?![^()]*\))")
"""Spaces and commas, but not those within the parentheses of a loss."""


def split_names(text: str | None) -> list[str]:
    """Names that are separated by spaces or commas.

    >>> split_names("CE, CE+SR gce(q=0.5, clamp=1e-7)")
    ['CE', 'CE+SR', 'gce(q=0.5, clamp=1e-7)']
    >>> split_names(None)
    []
    """
    return [name for name in _BETWEEN.split(text or "") if name]


def output_file(written: str, *, example: str) -> Path:
    """The path that `--output` names, or an error before anything is computed for it.

    Raises:
        ValueError: It is a folder, has the name of a packed file, or is `-`, which commands that
            take it ask for first.

    Example:
        >>> output_file("exports/", example="model.onnx")
        Traceback (most recent call last):
            ...
        ValueError: --output: expected a file, got the folder exports; say exports/model.onnx
    """
    path = Path(written)
    if written == "-":
        raise ValueError(
            f"--output: expected a file such as {example}, got -; standard output takes text alone"
        )
    if path.suffix.lower() == ".gz":
        raise ValueError(
            f"--output: expected a name such as {example}, got {path}; nothing is packed here"
        )
    ends = ("/", os.sep, *filter(None, [os.altsep]))
    if written.endswith(ends) or path.is_dir():
        raise ValueError(
            f"--output: expected a file, got the folder {path}; say {(path / example).as_posix()}"
        )
    return path


def read_settings(path: Path) -> dict[str, Any]:
    """Read settings from a TOML file."""
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise FileNotFoundError(f"--config: there is no file {path}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None


def read_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Settings that are written one by one; a value need not be in quotes.

    >>> read_assignments(["momentum=0.8", "optimizer=adamw", "nesterov=true"])
    {'momentum': 0.8, 'optimizer': 'adamw', 'nesterov': True}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise ValueError(f"--set: expected NAME=VALUE, got {text!r}")
        try:
            values[name] = tomllib.loads(f"value = {value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            values[name] = value
    return values
