"""Networks as text, the one place where strings become networks.

    cnn8
    resnet34(width=32)
    mlp(hidden=256,depth=3,batch_norm=true)
    timm/convnext_tiny
    package.module:factory

A name from a table, with whole numbers, `true` or `false` in parentheses; a pretrained network of
timm or torchvision, if installed; or a function of the user's own that returns a network. That last
form **imports and runs the code it names**: take such text only from people whose code you would
run. Nothing else is imported or evaluated.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from labelproof.models.blend import BLEND
from labelproof.models.network import MLP, EightLayerCNN, FourLayerCNN, Network
from labelproof.models.pretrained import LIBRARIES, call_factory, make_pretrained
from labelproof.models.resnet import ResNet, Stem
from labelproof.ranges import suggest, whole
from labelproof.text import TextError, check_arguments, format_value, parse_call

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_PLACE = re.compile(f"{_DOTTED}:{_DOTTED}", re.ASCII)
_LARGEST, _MOST_WEIGHTS = 10_000, 4_000_000_000
"""Of a width or depth, and of all layers together."""
_LIBRARY = re.compile(f"({'|'.join(LIBRARIES)})/([\\w.-]+)", re.ASCII)


@dataclass(frozen=True)
class NetworkFamily:
    """A network that text can name.

    Attributes:
        constructor: Takes the number of classes, the shape of one input, and options by name.
        summary: One line for a list of networks.
    """

    constructor: Callable[..., Network]
    summary: str

    @property
    def arguments(self) -> dict[str, int | bool]:
        """Its arguments in text, and their defaults.

        >>> NETWORKS["cnn4"].arguments
        {'width': 32, 'hidden': 128}
        """
        fixed = getattr(self.constructor, "keywords", {})
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.constructor).parameters.items()
            if isinstance(parameter.default, int) and name not in fixed
        }


def _mlp(
    num_classes: int,
    input_shape: Sequence[int],
    *,
    hidden: int = 256,
    depth: int = 2,
    batch_norm: bool = False,
    generator: torch.Generator | None = None,
) -> MLP:
    widths = (hidden,) * depth
    return MLP(num_classes, input_shape, hidden=widths, batch_norm=batch_norm, generator=generator)


_STEMS: tuple[tuple[Stem, str, int], ...] = (("cifar", "", 32), ("imagenet", "-imagenet", 224))
_PAPER = {
    (34, "cifar"): ", the paper's network for CIFAR-100",
    (50, "imagenet"): ", the paper's network for WebVision",
}

NETWORKS: Mapping[str, NetworkFamily] = {
    "cnn4": NetworkFamily(
        FourLayerCNN, "two convolutions and two linear layers, the paper's network for MNIST"
    ),
    "cnn8": NetworkFamily(
        EightLayerCNN, "six convolutions and two linear layers, the paper's network for CIFAR-10"
    ),
    **{
        f"resnet{depth}{ending}": NetworkFamily(
            partial(ResNet, depth=depth, stem=stem),
            f"ResNet-{depth} for images of about {pixels} pixels" + _PAPER.get((depth, stem), ""),
        )
        for stem, ending, pixels in _STEMS
        for depth in (18, 34, 50)
    },
    "mlp": NetworkFamily(_mlp, "linear layers with ReLU between them, for inputs of any shape"),
}
"""Every network by its name in text."""


def make_network(
    text: str,
    *,
    num_classes: int,
    input_shape: Sequence[int],
    generator: torch.Generator | None = None,
    pretrained: bool = True,
) -> nn.Module:
    """Build the network that `text` describes.

    A name from `NETWORKS`, with optional arguments; `timm/NAME` or `torchvision/NAME`; or
    `package.module:factory`, which **imports that module and runs its code**: the factory is called
    with `num_classes` and the arguments in parentheses, all by name, and returns an `nn.Module`.

    Args:
        text: For instance `"cnn4(width=12)"`, `"resnet34"` or `"torchvision.models:resnet18"`.
        num_classes: Number of classes.
        input_shape: Shape of one input: channels, height and width, or anything for an MLP.
        generator: Source of the initial weights; by default torch's global one.
        pretrained: Whether to load the weights of timm and torchvision networks; if not, networks
            are only built, for other weights to be loaded next.

    Raises:
        ValueError: The text is not a network, or not one for inputs of this shape.
        ImportError: The network's library is not installed.

    Example:
        >>> network = make_network("mlp(hidden=16)", num_classes=3, input_shape=(8,))
        >>> network(torch.zeros(2, 8)).shape
        torch.Size([2, 3])
        >>> make_network("resnt34", num_classes=3, input_shape=(3, 32, 32))
        Traceback (most recent call last):
            ...
        labelproof.text.TextError: network: expected one of cnn4, cnn8, resnet18, resnet34,
        resnet50, resnet18-imagenet, resnet34-imagenet, resnet50-imagenet, mlp, timm/NAME or
        torchvision/NAME for a pretrained one, or package.module:factory for one of your own; got
        'resnt34'; did you mean 'resnet34'?
          resnt34
          ^
    """
    num_classes = whole("num_classes", num_classes, 1)
    name, options = _parse(text)
    if name == BLEND:
        raise ValueError(
            f"network: {BLEND} is not a network; 'labelproof fit' uses it for tables of 30 rows or "
            f"more; expected one of {', '.join(NETWORKS)}"
        )
    if name in NETWORKS:
        if len(input_shape) == 1 and name != "mlp":
            raise ValueError(
                f"network: {name} is for images; for rows of a table choose mlp (network='mlp')"
            )
        make = partial(NETWORKS[name].constructor, num_classes, input_shape, **options)
        with torch.device("meta"):  # without memory: the text may come from an untrusted run
            weights = sum(weight.numel() for weight in make().parameters())
        if weights > _MOST_WEIGHTS:
            many = f"network: expected at most {_MOST_WEIGHTS:,} weights, got {weights:,}"
            raise TextError(many, text, 0)
        return make(generator=generator)
    if (match := _LIBRARY.fullmatch(name)) is not None:
        channels = input_shape[0] if len(input_shape) == 3 else 0
        if channels not in (1, 3):
            raise ValueError(
                f"network: {name} is for images of 1 or 3 channels, got inputs of shape "
                f"{tuple(input_shape)}"
            )
        shared = {"num_classes": num_classes, "channels": channels, "generator": generator}
        return make_pretrained(match[1], match[2], weights=pretrained, **shared)
    return call_factory(name, num_classes=num_classes, options=options, generator=generator)


def is_factory(text: str) -> bool:
    """Whether a network is `package.module:factory`, whose code would be run to build it.

    >>> is_factory("package.module:factory(width=8)"), is_factory("cnn8(width=8)")
    (True, False)
    """
    return _PLACE.fullmatch(_parse(text)[0]) is not None


def format_network(text: str) -> str:
    """The canonical text of a network, by which records are compared.

    It has no spaces, sorted arguments, and none at their default. Nothing is imported: for a
    network of the user's own, arguments are only sorted.

    Raises:
        ValueError: The text is not a network.

    Example:
        >>> format_network("CNN4( hidden=64, width=32 )")
        'cnn4(hidden=64)'
        >>> format_network("mlp(depth=3,batch_norm=true)")
        'mlp(batch_norm=true,depth=3)'
    """
    name, options = _parse(text)
    defaults = NETWORKS[name].arguments if name in NETWORKS else {}
    written = [
        f"{argument}={str(value).lower()}"
        for argument, value in sorted(options.items())
        if argument not in defaults or value != defaults[argument]
    ]
    return f"{name}({','.join(written)})" if written else name


def _parse(text: str) -> tuple[str, dict[str, int | bool]]:
    call = parse_call(text, what="network", words={"true": True, "false": False})
    place, library = _PLACE.fullmatch(call.name), _LIBRARY.fullmatch(call.name)
    name = call.name if place or library else call.name.lower()
    if not place and not library and name not in (*NETWORKS, BLEND):
        raise TextError(
            f"network: expected one of {', '.join(NETWORKS)}, timm/NAME or torchvision/NAME for a "
            f"pretrained one, or package.module:factory for one of your own; got {name!r}"
            f"{suggest(name, NETWORKS, cutoff=0.5)}",
            text,
            call.position,
        )
    defaults = NETWORKS[name].arguments if name in NETWORKS else {}
    if not place:
        check_arguments(call, defaults, text, what="network: ")
    options: dict[str, int | bool] = {}
    largest = 999_999_999 if place else _LARGEST
    for argument, value, position in call.arguments:
        is_bool = isinstance(value, bool)
        expects_bool = isinstance(defaults.get(argument, value), bool)
        fits = is_bool or (0 <= value <= largest and value.is_integer())
        if is_bool != expects_bool or not fits:
            kind = "true or false" if expects_bool else f"a whole number up to {largest:,}"
            problem = f"network: expected {kind} for {argument}, got {format_value(value)}"
            raise TextError(problem, text, position)
        options[argument] = value if is_bool else int(value)
    return name, options
