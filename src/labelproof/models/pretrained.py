"""Networks of timm and torchvision by name, and the user's own by a factory.

Both libraries are optional. They download and check pretrained weights themselves, once, into their
own cache.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from labelproof.models.network import global_state_kept
from labelproof.ranges import suggest

__all__ = ["LIBRARIES", "call_factory", "is_pretrained", "make_pretrained"]


def make_pretrained(
    library: str,
    name: str,
    *,
    num_classes: int,
    channels: int,
    weights: bool,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """A network of a library, with a last layer for these classes.

    Args:
        library: One of `LIBRARIES`.
        name: The library's name for it, such as `resnet18`.
        num_classes: Number of classes.
        channels: Of the images; a single grey channel is repeated three times.
        weights: Whether to load the library's weights; if not, the network is only built, for other
            weights to be loaded next.
        generator: Source of the last layer's weights.

    Raises:
        ImportError: The library is not installed.
        ValueError: It has no network of that name, or none with a last linear layer.
    """
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"network: {library}/{name} needs the package {library} ({error}); install it with "
            f"pip install {library}"
        ) from None
    vision = getattr(module, "models", None) if library == "torchvision" else None
    known = vision.list_models(module=vision) if vision else module.list_models()
    # timm lists names without the tags of their weights, which it accepts, too.
    if name not in known and (vision or not module.is_model(name)):
        raise ValueError(f"network: {library} has no {name!r}{suggest(name, known)}")
    with global_state_kept():
        if generator is not None:
            _seed_globally(generator)
        if vision is None:
            network = module.create_model(name, pretrained=weights, num_classes=num_classes)
        else:
            network = vision.get_model(name, weights="DEFAULT" if weights else None)
            parts = network.named_modules()
            linear = [(path, each) for path, each in parts if isinstance(each, nn.Linear)]
            if not linear:
                raise ValueError(f"network: {library}/{name} has no linear layer to replace")
            path, last = linear[-1]
            head = nn.Linear(last.in_features, num_classes, bias=last.bias is not None)
            network.set_submodule(path, head)
    return network if channels == 3 else _InColour(network)


class _InColour(nn.Module):
    """Repeats the channel of grey images for a network that expects colour."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images.expand(-1, 3, -1, -1))


LIBRARIES = ("timm", "torchvision")
"""Libraries whose networks are named LIBRARY/NAME."""


def is_pretrained(network: str | None) -> bool:
    """Whether a network comes with weights.

    >>> is_pretrained("timm/resnet18"), is_pretrained("cnn8"), is_pretrained(None)
    (True, False, False)
    """
    return network is not None and network.startswith(tuple(f"{name}/" for name in LIBRARIES))


def call_factory(
    place: str,
    *,
    num_classes: int,
    options: Mapping[str, int | bool] | None = None,
    generator: torch.Generator | None = None,
) -> nn.Module:
    """Build the user's own network: `factory(num_classes=num_classes, **options)`.

    Args:
        place: `package.module:factory`, whose code is imported and run.
        num_classes: Number of classes.
        options: Further arguments of the factory.
        generator: If given, torch's global CPU generator is seeded from it before the factory runs
            and restored afterwards, so that the weights depend on it alone.

    Raises:
        ValueError: There is no such factory, it does not take these arguments, or it does not
            return an `nn.Module`.

    >>> call_factory("torch.nn:Identity", num_classes=10)
    Identity()
    >>> call_factory("torch.nn:Identiti", num_classes=10)
    Traceback (most recent call last):
        ...
    ValueError: network: 'torch.nn:Identiti' cannot be imported (module 'torch.nn' has no attribute
    'Identiti'); its module has to be installed, or in a folder of PYTHONPATH
    """
    arguments = {"num_classes": num_classes, **(options or {})}
    with nullcontext() if generator is None else global_state_kept():
        try:
            factory: Any = pkgutil.resolve_name(place)
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"network: {place!r} cannot be imported ({error}); its module has to be installed, "
                "or in a folder of PYTHONPATH"
            ) from error
        if generator is not None:  # after the import, whose first run may draw numbers
            _seed_globally(generator)
        try:
            network = factory(**arguments)
        except TypeError as error:
            raise ValueError(
                f"network: {place!r} cannot be called with {', '.join(arguments)}: {error}"
            ) from error
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"network: expected {place!r} to return an nn.Module, got {type(network).__name__}"
        )
    return network


def _seed_globally(generator: torch.Generator) -> None:
    seed = torch.randint(2**62, (), generator=generator, device=generator.device)
    torch.default_generator.manual_seed(int(seed))
