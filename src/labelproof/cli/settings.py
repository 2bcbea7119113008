"""Settings of a run as text: TOML files, and `NAME=VALUE` on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelproof.training.configuration import Configuration

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


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


def format_settings(configuration: Configuration) -> str:
    """Write a configuration as the TOML that `read_settings` reads.

    >>> print(format_settings(Configuration("digits")).splitlines()[0])
    data = "digits"
    """
    lines = [f"{name} = {_toml(value)}" for name, value in configuration.as_values().items()]
    return "\n".join(lines) + "\n"


def _toml(value: str | bool | float) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for one character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return str(value).lower() if isinstance(value, bool) else repr(value)
