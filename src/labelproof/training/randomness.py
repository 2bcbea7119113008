"""Every draw of a run comes from its seed, a purpose and an epoch, and from nothing before it.

So a run that is resumed in the middle, packed with others, spread over processes or moved to
another device draws what it would have drawn alone, and no state has to be carried along.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor


def derive_seed(seed: int, purpose: str, epoch: int = 0) -> int:
    """A seed of 63 bits for one purpose in one epoch of a run.

    >>> derive_seed(1, "order", 3) == derive_seed(1, "order", 3)
    True
    >>> derive_seed(1, "order", 3) == derive_seed(1, "order", 4)
    False
    """
    # A hash, because seeds that differ by one give related streams in some generators.
    digest = hashlib.sha256(f"{seed}/{purpose}/{epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def generator_for(seed: int, purpose: str, epoch: int = 0) -> torch.Generator:
    """A generator at the start of the stream for one purpose in one epoch.

    >>> torch.rand(2, generator=generator_for(1, "order"))
    tensor([0.8866, 0.1006])
    """
    return torch.Generator().manual_seed(derive_seed(seed, purpose, epoch))


class GlobalChance:
    """A run's own course of torch's global random numbers, for networks that draw from them.

    Dropout takes no generator. The global state is lent to a run for the length of a step and put
    back, so that runs side by side do not move each other's, nor the program's.

    Args:
        device: Where the network runs.
        used: Whether anything draws; if not, nothing is done.

    Example:
        >>> chance = GlobalChance(torch.device("cpu"), used=True)
        >>> chance.seed(1)
        >>> before = torch.get_rng_state()
        >>> with chance.lent():
        ...     torch.rand(2)
        tensor([0.7576, 0.2793])
        >>> bool((torch.get_rng_state() == before).all())
        True
    """

    def __init__(self, device: torch.device, *, used: bool):
        self.used = used
        self.device = device
        self.state: dict[str, Tensor] = {}
        if used:
            self.seed(0)

    def seed(self, seed: int) -> None:
        """Start from a seed."""
        if not self.used:
            return
        self.state = {"cpu": torch.Generator().manual_seed(seed).get_state()}
        if self.device.type == "cuda":
            drawn = torch.Generator(self.device).manual_seed(seed)
            self.state["cuda"] = drawn.get_state()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state that was kept."""
        self.state = dict(state)

    def lent(self) -> AbstractContextManager[None]:
        """Inside, torch's global numbers are this run's."""
        return self._lent() if self.used else nullcontext()

    @contextmanager
    def _lent(self) -> Iterator[None]:
        before = self._exchange(self.state)
        try:
            yield
        finally:
            self.state = self._exchange(before)

    def _exchange(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = {"cpu": torch.get_rng_state()}
        torch.set_rng_state(state["cpu"])
        if "cuda" in state:
            found["cuda"] = torch.cuda.get_rng_state(self.device)
            torch.cuda.set_rng_state(state["cuda"], self.device)
        return found
