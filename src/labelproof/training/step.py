"""One training step, on tensors that stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn

from labelproof.training.algorithms import Algorithm, Batch
from labelproof.training.batches import Feed, Fetched, Share
from labelproof.training.execution import autocast
from labelproof.training.kernels.fusible import fusing_options
from labelproof.training.kernels.mlp import Direct, make_direct
from labelproof.training.metrics import Tally
from labelproof.training.optimizer import Optimizer

_SIDE_BY_SIDE = 64
"""Up to so many gradients are laid side by side in one compiled kernel."""

_UNTUNED = {"coordinate_descent_tuning": False}
"""Logits are small beside activations. Whoever has kernels tuned for the networks' sake would wait
for those of the loss too, and again for every exponent that a sweep tries."""


def judge(
    algorithm: Algorithm,
    tally: Tally,
    logits: tuple[Tensor, ...],
    fetched: Fetched,
    scales: Sequence[Tensor] = (),
) -> Tensor:
    """What a batch costs, summed over the networks; the tally takes note of it.

    Where gradients are scaled, the sum is of each network's cost times its own scale.
    """
    batch = Batch(logits, fetched.target, fetched.indices, fetched.weight)
    losses, parts = algorithm.objectives(batch)
    total = torch.stack(losses).sum() if losses[1:] else losses[0]
    tally.add(total.detach() / len(losses), parts, logits[0], fetched)
    if not scales:
        return total
    return torch.stack([loss * by for loss, by in zip(losses, scales, strict=True)]).sum()


def predict(
    feed: Feed, networks: Sequence[Callable[..., Tensor]], size: int, precision: str
) -> tuple[Fetched, tuple[Tensor, ...]]:
    """The next batch, and what each network says about it, in float32."""
    fetched = feed.fetch(size)
    with autocast(precision, fetched.inputs.device):
        logits = tuple(network(fetched.inputs) for network in networks)
    return fetched, tuple(each.float() for each in logits)


class Step:
    """Batch, forward, loss, backward, clip, update.

    Args:
        networks: One, or as many as the algorithm trains, as they are called: perhaps wrapped.
        algorithm: What is minimised.
        optimizers: One for each network.
        feed: Gives the batch.
        tally: Takes note.
        precision: `float32`, `bf16` or `fp16`.
        average: The tensors of a moving average, and those that they follow after each step.
        decay: How much of the average stays at each step.
        shared: Whether the backward pass itself averages gradients over processes.
        compile: Whether the parts are compiled.
    """

    def __init__(
        self,
        networks: Sequence[nn.Module],
        algorithm: Algorithm,
        optimizers: Sequence[Optimizer],
        feed: Feed,
        tally: Tally,
        *,
        precision: str = "float32",
        average: tuple[list[Tensor], list[Tensor]] | None = None,
        decay: float = 0.0,
        shared: bool = False,
        compile: bool = False,
    ):
        def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
            if not compile:
                return function
            _allow_many_variants()
            return torch.compile(function, dynamic=False, options=options or None)

        self.algorithm = algorithm
        self.optimizers = list(optimizers)
        self.feed = feed
        self.tally = tally
        self.precision = precision
        self.decay = decay
        self.average = average
        self.shared = shared
        # torch compiles what spreads over processes by its own rules: the wrapped network itself.
        fusing = fusing_options(networks)
        self.networks = [compiled(network, **fusing) if shared else network for network in networks]
        self.predict = predict if shared else compiled(predict, **fusing)
        # What draws from a generator of its own cannot be compiled in one piece.
        self.judge = judge if algorithm.draws else compiled(judge, **_UNTUNED)
        self.direct: Direct | None = None
        if precision == "float32" and len(networks) == 1 and not compile and not shared:
            (network,), (optimizer,) = networks, self.optimizers
            self.direct = make_direct(network, algorithm, optimizer, feed, tally)
        self.update = compiled(Optimizer.update, max_pointwise_cat_inputs=_SIDE_BY_SIDE)

    def __call__(self, share: Share) -> None:
        """Do one step."""
        if self.direct is not None and self.direct.ready:
            self._step_directly(self.direct, share)
        else:
            self._step_traced(share)
        if self.average is not None:
            with torch.no_grad():
                torch._foreach_lerp_(  # pyright: ignore[reportPrivateImportUsage]
                    *self.average, 1 - self.decay
                )

    def _step_directly(self, direct: Direct, share: Share) -> None:
        with torch.no_grad():
            self.optimizers[0].move(direct(self.feed.fetch(share.local)))

    def _step_traced(self, share: Share) -> None:
        fetched, logits = self.predict(self.feed, self.networks, share.local, self.precision)
        scales = [each.scale for each in self.optimizers if each.scale is not None]
        total = self.judge(self.algorithm, self.tally, logits, fetched, scales)
        gradients = self._gradients(total, share)
        for optimizer in self.optimizers:
            count = len(optimizer.parameters)
            self.update(optimizer, gradients[:count])
            del gradients[:count]

    def _gradients(self, total: Tensor, share: Share) -> list[Tensor]:
        """For the parameters of all optimisers, one after the other."""
        wanted = [each for optimizer in self.optimizers for each in optimizer.parameters]
        if self.shared:
            # Gradients are averaged over processes, whose shares may differ by one example.
            weight = share.local * torch.distributed.get_world_size() / share.whole
            (total * weight).backward()
            return [_taken(parameter) for parameter in wanted]
        # Not .backward(): its accumulation nodes remember the stream they were made on.
        return list(torch.autograd.grad(total, wanted, materialize_grads=True))


def _taken(parameter: nn.Parameter) -> Tensor:
    """A parameter's gradient, which it does not keep."""
    gradient = parameter.grad
    parameter.grad = None
    return torch.zeros_like(parameter) if gradient is None else gradient


def _allow_many_variants() -> None:
    """Let torch compile a function for more than eight losses before it gives up on that."""
    import torch._dynamo

    config: Any = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    setattr(config, name, max(getattr(config, name), 128))
