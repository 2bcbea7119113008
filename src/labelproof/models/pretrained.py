"""Networks of timm and torchvision by name, with the weights that were trained for them.

Neither library is needed otherwise, and neither is asked for: whoever has one installed can name
its networks. Weights are fetched and checked by the library itself, once, into its own cache.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from labelproof.models.initialization import global_state_kept
from labelproof.ranges import suggest

__all__ = ["LIBRARIES", "make_pretrained"]


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
        name: As the library calls it, such as `resnet18`.
        num_classes: Number of classes.
        channels: Of the images; one grey channel is shown to the network three times.
        weights: Whether to start from the library's weights, or only to build the network, as for
            weights of one's own that are loaded next.
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
    with global_state_kept():
        if generator is not None:
            seed = torch.randint(2**62, (), generator=generator, device=generator.device)
            torch.default_generator.manual_seed(int(seed))
        network = LIBRARIES[library](module, name, num_classes, weights)
    return network if channels == 3 else _InColour(network)


def _from_timm(timm: Any, name: str, num_classes: int, weights: bool) -> nn.Module:
    if not timm.is_model(name):
        raise ValueError(f"network: timm has no {name!r}{suggest(name, timm.list_models())}")
    return timm.create_model(name, pretrained=weights, num_classes=num_classes)


def _from_torchvision(torchvision: Any, name: str, num_classes: int, weights: bool) -> nn.Module:
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise ValueError(f"network: torchvision has no {name!r}{suggest(name, known)}")
    if name in _WITH_HELPERS:
        raise ValueError(
            f"network: torchvision/{name} has outputs of its own for training, which are not "
            "supported; another of its networks will do"
        )
    network = torchvision.models.get_model(name, weights="DEFAULT" if weights else None)
    return _with_head(network, num_classes, f"torchvision/{name}")


def _with_head(network: nn.Module, num_classes: int, place: str) -> nn.Module:
    """The network with its last linear layer replaced by one for these classes."""
    found = [(path, each) for path, each in network.named_modules() if isinstance(each, nn.Linear)]
    if not found:
        raise ValueError(f"network: {place} has no linear layer at its end to replace")
    path, last = found[-1]
    parent, _, attribute = path.rpartition(".")
    head = nn.Linear(last.in_features, num_classes, bias=last.bias is not None)
    setattr(network.get_submodule(parent), attribute, head)
    return network


class _InColour(nn.Module):
    """Shows grey images to a network for colour."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images.expand(-1, 3, -1, -1))


_WITH_HELPERS = ("googlenet", "inception_v3")

LIBRARIES: dict[str, Callable[[Any, str, int, bool], nn.Module]] = {
    "timm": _from_timm,
    "torchvision": _from_torchvision,
}
"""What networks can be named from, as LIBRARY/NAME."""
