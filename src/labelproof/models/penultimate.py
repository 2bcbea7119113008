"""What the last linear layer of a network sees."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

__all__ = ["penultimate"]


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
