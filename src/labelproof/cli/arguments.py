"""Arguments as they are typed: losses of your own, seeds, names, and the file to write."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

LOSS_FILES = "LABELPROOF_LOSSES"
"""As `labelproof.losses.names` has it, which imports torch."""


def _make_known(context: typer.Context, files: list[Path] | None) -> list[Path] | None:
    """Name the files in the environment while the command runs; its workers find them there."""
    if not files or context.resilient_parsing:
        return files
    before = os.environ.get(LOSS_FILES)
    named = [str(file.expanduser().resolve()) for file in files]
    os.environ[LOSS_FILES] = os.pathsep.join([*named, *([before] if before else [])])
    context.call_on_close(lambda: _restore(before))
    from labelproof.losses.names import known_losses

    try:
        known_losses()  # a mistake in a file is told before anything is begun
    except ValueError:
        _restore(before)  # nothing is closed that has not begun
        raise
    return files


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(LOSS_FILES, None)
    else:
        os.environ[LOSS_FILES] = before


LossFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--loss-file",
        rich_help_panel="More options",
        metavar="FILE",
        help="A Python file that defines your own losses, LOSSES = {'mine': MyLoss}. Its code "
        f"runs. Repeatable; {LOSS_FILES} in the environment does the same.",
        show_default=False,
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
