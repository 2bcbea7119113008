"""Where a command is told to write one file: refused at once if no file can be there."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["output_file"]


def output_file(written: str, *, example: str) -> Path:
    """The path that `--output` names, or an error before anything is computed for it.

    Args:
        written: What was said, as it was said: a path forgets the slash at its end.
        example: What the file could be called, were a folder meant.

    Raises:
        ValueError: It is a folder, would be in a file, or has the name of a packed file.

    Example:
        >>> output_file("exports/", example="model.onnx")
        Traceback (most recent call last):
            ...
        ValueError: --output: expected a file, got the folder exports; say exports/model.onnx
    """
    path = Path(written)
    if path.suffix.lower() == ".gz":
        raise ValueError(
            f"--output: expected a name such as {example}, got {path}; nothing is packed here"
        )
    ends = ("/", os.sep, *filter(None, [os.altsep]))
    if written.endswith(ends) or path.is_dir():
        raise ValueError(
            f"--output: expected a file, got the folder {path}; say {(path / example).as_posix()}"
        )
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise ValueError(f"--output: expected {path} in a folder, but {parent} is a file")
            break
    return path
