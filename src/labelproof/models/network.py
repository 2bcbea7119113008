"""What every network is: a body that makes features and a head that reads them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from labelproof.ranges import whole


class Network(nn.Module):
    """A classifier in two parts; subclasses make the parts.

    Attributes:
        body: From inputs to features, `(N, D)`.
        head: The last linear layer, from features to logits.

    Example:
        >>> import torch
        >>> network = Network()
        >>> network.body, network.head = nn.Sequential(nn.Flatten()), nn.Linear(12, 10)
        >>> network.features(torch.zeros(2, 3, 4)).shape, network(torch.zeros(2, 3, 4)).shape
        (torch.Size([2, 12]), torch.Size([2, 10]))
    """

    body: nn.Sequential
    head: nn.Linear

    def features(self, inputs: Tensor) -> Tensor:
        """What the head sees, `(N, D)`."""
        return self.body(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, `(N, num_classes)`."""
        return self.head(self.features(inputs))


def initialize(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """The paper's initialisation: Kaiming for convolutions, Xavier for linear layers.

    Weights are uniform, biases zero; everything else is left as it is.

    Args:
        network: Changed in place.
        generator: Source of the weights; torch's global one where it is left out.

    Example:
        >>> layer = torch.nn.Linear(3, 3)
        >>> initialize(layer, torch.Generator().manual_seed(0))
        >>> bool(layer.weight.abs().max() <= 1), layer.bias.tolist()
        (True, [0.0, 0.0, 0.0])
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu", generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def global_state_kept() -> AbstractContextManager[None]:
    """A context that gives torch's global CPU generator back as it was.

    torch's layers fill themselves from the global generator as they are made. Those weights are
    overwritten, and the draws should not shift the random numbers of the code around.

    Example:
        >>> before = torch.get_rng_state()
        >>> with global_state_kept():
        ...     layer = torch.nn.Linear(3, 3)
        >>> torch.equal(before, torch.get_rng_state())
        True
    """
    # skip_init would save the draws, but its first use loads torch's meta kernels: half a second.
    return torch.random.fork_rng(devices=[])


def sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape as whole numbers of at least 1, else say what came.

    >>> sizes("input_shape", [64])
    (64,)
    >>> sizes("input_shape", 64)
    Traceback (most recent call last):
        ...
    TypeError: input_shape: expected the sizes of one input such as (3, 32, 32) or (64,), got 64
    """
    if isinstance(shape, str) or not isinstance(shape, Sequence) or not shape:
        raise TypeError(
            f"{name}: expected the sizes of one input such as (3, 32, 32) or (64,), got {shape!r}"
        )
    return tuple(whole(name, size, 1) for size in shape)


def image_sizes(name: str, shape: Sequence[int], *, smallest: int = 1) -> tuple[int, int, int]:
    """Return channels, height and width, else say what came.

    Args:
        name: The argument's name, for the message.
        shape: What the caller gave.
        smallest: The least height and width.

    >>> image_sizes("image_shape", (3, 32, 32), smallest=8)
    (3, 32, 32)
    >>> image_sizes("image_shape", (64,))
    Traceback (most recent call last):
        ...
    ValueError: image_shape: expected (channels, height, width), got (64,);
    inputs of any other shape are for an MLP
    """
    found = sizes(name, shape)
    if len(found) != 3:
        raise ValueError(
            f"{name}: expected (channels, height, width), got {found}; "
            "inputs of any other shape are for an MLP"
        )
    channels, height, width = found
    if min(height, width) < smallest:
        raise ValueError(
            f"{name}: expected a height and width of at least {smallest}, which the pooling "
            f"brings down to 1, got {found}"
        )
    return channels, height, width


def penultimate(network: nn.Module, inputs: Tensor) -> Tensor:
    """The penultimate features of any network.

    A network with a method `features` and a linear layer `head`, as all of this package have, is
    asked for them. Any other is run on the inputs, and the features are what went into the linear
    layer it called last. Gradients flow, and training mode stays as it is: call `network.eval()`
    first where batch normalisation or dropout should not see these inputs as training.

    Args:
        network: Any classifier whose logits come from an `nn.Linear`.
        inputs: A batch, as the network takes it.

    Returns:
        Features, `(N, D)`.

    Raises:
        ValueError: No linear layer made the network's outputs.

    Example:
        >>> network = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3))
        >>> penultimate(network, torch.zeros(2, 8)).shape
        torch.Size([2, 5])
    """
    features = getattr(network, "features", None)
    head = getattr(network, "head", None)
    # In torchvision's VGG and its like `features` is a module that makes feature maps: not ours.
    if callable(features) and not isinstance(features, nn.Module) and isinstance(head, nn.Linear):
        return cast(Tensor, features(inputs))
    return _last_linear_input(network, inputs)


def _last_linear_input(network: nn.Module, inputs: Tensor) -> Tensor:
    # The layer called last, which need not be the one registered last.
    calls: list[tuple[nn.Module, Tensor]] = []
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    keep = partial(_keep, calls)
    hooks = [layer.register_forward_pre_hook(keep, with_kwargs=True) for layer in layers]
    try:
        with _eager():
            outputs = network(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    advice = "give it a method features(inputs) and a linear layer head"
    if not calls:
        raise ValueError(
            f"network: expected {type(network).__name__} to call an nn.Linear, it called none; "
            f"{advice}"
        )
    layer, seen = calls[-1]
    if isinstance(outputs, Tensor) and outputs.shape[-1:] != (layer.out_features,):
        raise ValueError(
            f"network: expected the outputs of {type(network).__name__} to come from its last "
            f"nn.Linear, which gives {layer.out_features} numbers, got {tuple(outputs.shape)}; "
            f"{advice}"
        )
    return seen


def _keep(
    calls: list[tuple[nn.Module, Tensor]],
    layer: nn.Module,
    arguments: tuple[Tensor, ...],
    keywords: dict[str, Tensor],
) -> None:
    # Only the last one: to keep what every layer sees would hold on to memory.
    calls[:] = [(layer, arguments[0] if arguments else keywords["input"])]


def _eager() -> AbstractContextManager[object]:
    # Compiled code does not see a hook that came later. Nothing is compiled before torch's compiler
    # is loaded, and loading it takes a second.
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")
