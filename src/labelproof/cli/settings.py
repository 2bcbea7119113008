"""Settings of a run as text: TOML files, and `NAME=VALUE` on the command line."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelproof.ranges import suggest
from labelproof.training.configuration import Configuration

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


_NAMES = [field.name for field in dataclasses.fields(Configuration)]


def read_settings(path: Path) -> dict[str, Any]:
    r"""Read settings from a TOML file; a name that is no setting is refused.

    >>> file = getfixture("tmp_path") / "run.toml"
    >>> _ = file.write_text('data = "digits"\nepoch = 3\n')
    >>> read_settings(file)
    Traceback (most recent call last):
        ...
    ValueError: /.../run.toml: unknown setting 'epoch'; did you mean 'epochs'?
    """
    try:
        with path.open("rb") as stream:
            values = tomllib.load(stream)
    except FileNotFoundError:
        raise FileNotFoundError(f"--config: there is no file {path}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from None
    _check_names(values, str(path))
    return values


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
    _check_names(values, "--set")
    return values


def _check_names(values: Mapping[str, Any], place: str) -> None:
    for name in values:
        if name not in _NAMES:
            hint = suggest(name, _NAMES) or f"; known: {', '.join(_NAMES)}"
            raise ValueError(f"{place}: unknown setting {name[:80]!r}{hint}")


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
