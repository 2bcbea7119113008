"""Build the configuration of a run from flags, a file and a preset.

Flags come before the file, the file before the preset, the preset before the defaults.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.published import DATASETS, plain_name
from labelproof.experiments.presets import paper_configuration, paper_noise
from labelproof.fitting.recipe import LARGE, look_at, network_for, small_network
from labelproof.noise import parse_noise
from labelproof.ranges import choose, suggest
from labelproof.training.configuration import Configuration

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

__all__ = [
    "PRESETS",
    "choose_configuration",
    "format_settings",
    "read_assignments",
    "read_settings",
]

PRESETS = ("paper",)
"""Settings that have a name."""

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
    except ValueError as error:
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
        except tomllib.TOMLDecodeError:
            values[name] = value
    _check_names(values, "--set")
    return values


def _check_names(values: Mapping[str, Any], place: str) -> None:
    for name in values:
        if name not in _NAMES:
            hint = suggest(name, _NAMES) or f"; known: {', '.join(_NAMES)}"
            raise ValueError(f"{place}: unknown setting {name!r}{hint}")


def format_settings(configuration: Configuration) -> str:
    """Write a configuration as the TOML that `read_settings` reads.

    >>> print(format_settings(Configuration("digits")).splitlines()[0])
    data = "digits"
    """
    lines = [f"{name} = {_toml(value)}" for name, value in configuration.as_values().items()]
    return "\n".join(lines) + "\n"


def choose_configuration(
    values: Mapping[str, Any], *, preset: str | None, look: Callable[[], Dataset]
) -> Configuration:
    """The configuration that settings ask for, with a preset or defaults that fit the data.

    Example:
        >>> values = {"data": "cifar10", "loss": "ce+sr", "noise": "symmetric:0.6", "epochs": 3}
        >>> paper = choose_configuration(values, preset="paper", look=lambda: None)
        >>> paper.network, paper.epochs, paper.noise
        ('cnn8', 3, 'symmetric:0.6:exact')
        >>> paper.loss
        'ce+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true,clamp=1e-7)'
        >>> choose_configuration({"data": "digits"}, preset=None, look=lambda: None).network
        'cnn4(width=12)'
    """
    given = dict(values)
    if "data" not in given:
        raise ValueError(
            "data: expected a dataset's name or a path, such as --data digits, got nothing"
        )
    if isinstance(given["data"], str):
        given["data"] = plain_name(given["data"])
    try:
        if preset is not None:
            choose("preset", preset, PRESETS)
            return _from_paper(given)
        # Whatever is wrong with the settings is said before anything is read.
        Configuration.from_values(given)
        return Configuration.from_values({**_fitting(given, look), **given})
    except TypeError as error:  # a file gives values of any type
        raise ValueError(str(error)) from None


def _from_paper(given: dict[str, Any]) -> Configuration:
    data, noise = given.pop("data"), given.pop("noise", "none")
    method = given.pop("loss", "CE+SR")
    for name, text in (("data", data), ("noise", noise), ("loss", method)):
        if not isinstance(text, str):
            raise TypeError(f"{name}: expected a text, got {text!r} ({type(text).__name__})")
    spec = parse_noise(noise)
    if spec.kind in ("symmetric", "asymmetric") and not spec.exact:
        noise = paper_noise(data, spec.kind, spec.rate)
    return paper_configuration(data, method, noise=noise, **given)


def _fitting(given: Mapping[str, Any], look: Callable[[], Dataset]) -> dict[str, str]:
    """A network for the size of the images, and crops for those that are large."""
    if "network" in given and "augmentation" in given:
        return {}
    data = given["data"]
    lazy = False
    if data in DATASETS:
        shape = DATASETS[data].image_shape
    else:
        dataset = look()
        if dataset.tabular:
            return network_for(look_at(dataset))
        shape, lazy = dataset.image_shape, not isinstance(dataset.train.images, np.ndarray)
    _, height, width = shape
    if max(height, width) > 32:
        # A network that was chosen for images in memory may be made for just their size.
        crop = {"augmentation": "resized-crop:224,flip"}
        return {"network": LARGE, **crop} if "network" not in given or lazy else {}
    return {"network": small_network(height, width)}


def _toml(value: str | bool | float) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for one character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return str(value).lower() if isinstance(value, bool) else repr(value)
