"""Where a command is told to write one file: refused at once if no file can be there.

`-` is standard output, as other programs have it, for commands whose result is text.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["is_standard_output", "output_file"]


def is_standard_output(written: str | Path) -> bool:
    """Whether what was said for `--output` means standard output.

    >>> is_standard_output("-"), is_standard_output("./-"), is_standard_output("table.csv")
    (True, False, False)
    """
    return str(written) == "-"


def output_file(written: str, *, example: str, flag: str = "--output") -> Path:
    """The path that `--output` names, or an error before anything is computed for it.

    Args:
        written: What was said, as it was said: a path forgets the slash at its end.
        example: What the file could be called, were a folder meant.
        flag: What it was said with.

    Raises:
        ValueError: It is a folder, would be in a file, has the name of a packed file, or is `-`,
            which commands that take it ask for first.

    Example:
        >>> output_file("exports/", example="model.onnx")
        Traceback (most recent call last):
            ...
        ValueError: --output: expected a file, got the folder exports; say exports/model.onnx
    """
    path = Path(written)
    if is_standard_output(written):
        raise ValueError(
            f"{flag}: expected a file such as {example}, got -; standard output takes text alone"
        )
    if path.suffix.lower() == ".gz":
        raise ValueError(
            f"{flag}: expected a name such as {example}, got {path}; nothing is packed here"
        )
    ends = ("/", os.sep, *filter(None, [os.altsep]))
    if written.endswith(ends) or path.is_dir():
        raise ValueError(
            f"{flag}: expected a file, got the folder {path}; say {(path / example).as_posix()}"
        )
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise ValueError(f"{flag}: expected {path} in a folder, but {parent} is a file")
            break
    return path
