"""Initial weights that come from one generator, and from nothing else."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import nn

__all__ = ["global_state_kept", "initialize"]


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
