"""Networks of the user's, found by the place of the function that makes them."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from labelproof.models.initialization import global_state_kept

__all__ = ["call_factory", "find_factory"]


def find_factory(place: str) -> Callable[..., Any]:
    """Import `package.module:factory`. This runs the module's code.

    Raises:
        ValueError: There is no such module, nothing of that name in it, or it cannot be called.

    >>> find_factory("torch.nn:Linear")
    <class 'torch.nn.modules.linear.Linear'>
    >>> find_factory("torch.nn:Linaer")
    Traceback (most recent call last):
        ...
    ValueError: network: nothing called 'Linaer' in torch.nn, did you mean 'Linear'?
    """
    module_name, _, attributes = place.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # A module that was found but misses a dependency of its own tells that better itself.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ValueError(
            f"network: no module {error.name!r} for {place!r}; it has to be installed, or its "
            "folder to be on PYTHONPATH"
        ) from None
    for name in attributes.split("."):
        if not hasattr(found, name):
            where = getattr(found, "__name__", repr(found))
            close = difflib.get_close_matches(name, dir(found), n=1)
            suggestion = f", did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"network: nothing called {name!r} in {where}{suggestion}")
        found = getattr(found, name)
    if isinstance(found, nn.Module) or not callable(found):
        raise ValueError(
            f"network: expected {place!r} to be a function or class that makes a network, got "
            f"{type(found).__name__}"
        )
    return found


def call_factory(
    place: str,
    *,
    num_classes: int,
    options: Mapping[str, int | bool] | None = None,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Make the user's network: `factory(num_classes=num_classes, **options)`.

    Args:
        place: `package.module:factory`, whose code is imported and run.
        num_classes: Number of classes.
        options: Further arguments of the factory.
        generator: Where it is given, torch's global CPU generator is seeded from it before the
            factory runs and put back afterwards, so that the weights follow from it alone.

    Raises:
        ValueError: There is no such factory, it does not take these arguments, or what it makes is
            no `nn.Module`.

    >>> call_factory("torch.nn:Identity", num_classes=10)
    Identity()
    """
    arguments = {"num_classes": num_classes, **(options or {})}
    with nullcontext() if generator is None else global_state_kept():
        factory = find_factory(place)
        _check_arguments(place, factory, arguments)
        if generator is not None:  # after the import, which draws the first time and not the second
            seed = torch.randint(2**62, (), generator=generator, device=generator.device)
            torch.default_generator.manual_seed(int(seed))
        network = factory(**arguments)
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"network: expected {place!r} to return an nn.Module, got {type(network).__name__}"
        )
    return network


def _check_arguments(
    place: str, factory: Callable[..., Any], arguments: Mapping[str, int | bool]
) -> None:
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # some functions written in C do not tell theirs
        return
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise ValueError(
            f"network: expected {place!r} to take {', '.join(arguments)} by name, got "
            f"{signature}: {error}"
        ) from None
