"""What a training step is made of, on tensors that stay where they are.

`Functions` are what it calls, compiled or not. `Recorder` records a step once and replays it: on
CUDA the host then only says "again". `Direct` is the step of a small network on the CPU, with its
gradient written down. `GlobalChance` lends it torch's random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from labelproof.losses import Loss, SparseRegularized
from labelproof.losses.gradient import MeanAndGradient, has_gradient, mean_and_gradient
from labelproof.losses.penalty import SPARSE
from labelproof.models.network import MLP
from labelproof.training.algorithms import Algorithm, Batch, Supervised
from labelproof.training.batches import Feed, Fetched
from labelproof.training.execution import autocast
from labelproof.training.kernels import fusing_options
from labelproof.training.metrics import Tally, count_fitted
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


class Functions(NamedTuple):
    """What a step calls."""

    networks: Sequence[Callable[..., Tensor]]
    """One, or as many as the algorithm trains, as they are called: perhaps wrapped."""
    predict: Callable[..., Any] = predict
    judge: Callable[..., Any] = judge
    update: Callable[..., Any] = Optimizer.update

    def compiled(self, networks: Sequence[nn.Module], *, draws: bool, shared: bool) -> Functions:
        """Compiled for batches of one size.

        Args:
            networks: The networks themselves.
            draws: Whether the loss draws from a generator of its own, which cannot be compiled in
                one piece.
            shared: Whether the backward pass itself averages gradients over processes. torch
                compiles what spreads over processes by its own rules: the wrapped network itself.
        """
        _allow_many_variants()
        make: Any = partial(torch.compile, dynamic=False)
        fusing = fusing_options(networks) or None
        beside = {"max_pointwise_cat_inputs": _SIDE_BY_SIDE}
        return Functions(
            [make(each, options=fusing) for each in self.networks] if shared else self.networks,
            self.predict if shared else make(self.predict, options=fusing),
            self.judge if draws else make(self.judge, options=_UNTUNED),
            make(self.update, options=beside),
        )


def take_gradient(parameter: nn.Parameter) -> Tensor:
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


_SMALL = 1 << 16
"""Numbers in a weight. Of larger ones the copy costs more than it saves."""

_LOG_SPARSE = math.log(SPARSE)

# Torch's own, which has no name in Python; looked up once.
_through_relu = torch.ops.aten.threshold_backward.default


def make_direct(
    network: nn.Module, algorithm: Algorithm, optimizer: Optimizer, feed: Feed, tally: Tally
) -> Direct | None:
    """For a run in float32 on the CPU; `None` where its gradient has to be traced."""
    if type(network) is not MLP or type(algorithm) is not Supervised:
        return None
    layers = [each for each in network.modules() if isinstance(each, nn.Linear)]
    normalised = any(isinstance(each, nn.BatchNorm1d) for each in network.modules())
    if normalised or any(each.weight.numel() > _SMALL for each in layers):
        return None
    given, loss = feed.given, algorithm.loss
    # The loss may be told to pass over some labels, which here would count.
    counted = bool((given >= 0).all()) and not bool((given == loss.ignore_index).any())
    if given.device.type != "cpu" or not has_gradient(loss) or not counted:
        return None
    return Direct(layers, loss, optimizer, tally)


class Direct:
    """The gradient of a batch, from its examples, written down instead of traced.

    On the CPU torch's graph costs more than the arithmetic of a small network: for two layers of a
    hundred units, making it and walking back through it is half of a step. Where the network is
    linear layers with ReLU between and the loss sees one label's probability, both gradients are a
    few lines: a step is 1.5 to 2 times as fast (`benchmarks/rows.py`).
    """

    def __init__(self, layers: list[nn.Linear], loss: Loss, optimizer: Optimizer, tally: Tally):
        self.loss = loss
        self.tally = tally
        self.gradient = torch.zeros_like(optimizer.flat.values)
        self._parameters = [each for layer in layers for each in (layer.weight, layer.bias)]
        views = optimizer.flat.like(self.gradient)
        places = {id(each): view for each, view in zip(optimizer.parameters, views, strict=True)}
        self._into = [places.get(id(each)) for each in self._parameters]

    def __call__(self, fetched: Fetched) -> Tensor:
        """The gradient of a batch, laid as the optimiser lays the parameters; under no_grad."""
        *states, logits = _pass_on(fetched.inputs.flatten(1), self._parameters)
        found = mean_and_gradient(self.loss, logits, fetched.target, weight=fetched.weight)
        self._note(found, fetched)
        _pass_back(states, self._parameters, found.gradient, self._into)
        return self.gradient

    def _note(self, found: MeanAndGradient, fetched: Fetched) -> None:
        """As `Tally.add`, with numbers of Python: an operation costs more than its arithmetic."""
        size, loss = len(fetched.target), float(found.mean)
        highest, predicted = found.log_probabilities.max(dim=1)
        parts = [float((highest > _LOG_SPARSE).sum())]
        if found.penalty is not None and fetched.weight is None:
            assert isinstance(self.loss, SparseRegularized)  # noqa: S101
            penalty = float(found.penalty.sum())
            parts = [size * loss - self.loss.weight * penalty, penalty, *parts]
        if fetched.clean is fetched.target:  # no label is known to be wrong
            counts = [int((fetched.target == predicted).sum()), 0, 0, size, 0]
        else:
            counts = count_fitted(predicted, fetched).tolist()
        tally = self.tally
        tally.sums += torch.tensor([size * loss, *parts, *counts], dtype=tally.sums.dtype)
        if not math.isfinite(loss) and int(tally.diverged) < 0:
            tally.diverged.copy_(tally.count)
        tally.count += 1


def _pass_on(inputs: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """What each layer is given, and the last one's output; weight and bias of each layer come."""
    # A copy in the order of torch's own product: on ARM a transposed weight goes to a library that
    # prepares each call anew.
    states = [inputs]
    for place in range(0, len(parameters), 2):
        weight, bias = parameters[place], parameters[place + 1]
        if place:
            states[-1].relu_()
        states.append(torch.addmm(bias, states[-1], weight.t().contiguous()))
    return states


def _pass_back(
    states: Sequence[Tensor],
    parameters: Sequence[Tensor],
    gradient: Tensor,
    into: Sequence[Tensor | None],
) -> None:
    """Write the gradients of the parameters into memory that is there, where it is wanted."""
    for layer in reversed(range(len(states))):
        weight, bias = into[2 * layer], into[2 * layer + 1]
        if weight is not None:
            torch.mm(gradient.t(), states[layer], out=weight)
        if bias is not None:
            torch.sum(gradient, dim=0, out=bias)
        if layer:
            gradient = gradient.mm(parameters[2 * layer])
            # The state is after the ReLU, and not above zero where that let nothing through.
            gradient = _through_relu(gradient, states[layer], 0)


WARM_UPS = 3
"""Plain calls before a recording: compilation, the choice of algorithms and lazy allocations."""


class Recorder:
    """Records functions of one run into graphs that share memory, and replays them.

    Each run records on a stream of its own. Recorded on a shared one, as torch does unless told,
    graphs share the workspaces of cuBLAS and the state of the random numbers, and replaying two at
    once corrupts both: a fast and wrong result that `benchmarks/packing.py` looks for.
    """

    def __init__(
        self,
        stream: torch.cuda.Stream,
        state: Callable[[], Mapping[str, Tensor]],
        generators: tuple[torch.Generator, ...] = (),
    ):
        self.stream = stream
        self.state = state
        self.generators = generators
        self.graphs: dict[Any, torch.cuda.CUDAGraph] = {}
        # Graphs of one run never replay at the same time, so their scratch memory can be one.
        self.pool = torch.cuda.graph_pool_handle()

    def replay(self, key: Any) -> None:
        """Do what was recorded under `key`; the current stream must be the run's."""
        self.graphs[key].replay()

    def record(self, key: Any, function: Callable[[], object]) -> None:
        """Record a function under `key`, leaving the state as it was."""
        with torch.cuda.stream(self.stream):
            for _ in range(WARM_UPS):
                # Put back after each: of an epoch of one step there is no second batch.
                with self._state_kept():
                    function()
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)  # pyright: ignore[reportAttributeAccessIssue]
        with torch.cuda.graph(
            graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
        ):
            function()
        self.graphs[key] = graph

    @contextmanager
    def _state_kept(self) -> Iterator[None]:
        kept = {name: tensor.clone() for name, tensor in self.state().items()}
        yield
        with torch.no_grad():
            for name, tensor in self.state().items():
                tensor.copy_(kept[name])


@contextmanager
def tuned() -> Iterator[None]:
    """Inside, cuDNN tries its algorithms for each shape and keeps the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.deterministic
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class GlobalChance:
    """A run's own course of torch's global random numbers, for networks that draw from them.

    Dropout takes no generator. The global state is lent to a run for the length of a step and put
    back, so that runs side by side do not move each other's, nor the program's.
    """

    def __init__(self, device: torch.device, *, used: bool):
        self.used = used
        self.state: dict[str, Tensor] = {}
        self._devices = [device] if device.type == "cuda" else []
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Start from a seed."""
        if self.used:
            self.state = {
                device.type: torch.Generator(device).manual_seed(seed).get_state()
                for device in (torch.device("cpu"), *self._devices)
            }

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside, torch's global numbers are this run's."""
        if not self.used:
            yield
            return
        with torch.random.fork_rng(self._devices):
            torch.set_rng_state(self.state["cpu"])
            for device in self._devices:
                torch.cuda.set_rng_state(self.state["cuda"], device)
            try:
                yield
            finally:
                self.state = {"cpu": torch.get_rng_state()}
                for device in self._devices:
                    self.state["cuda"] = torch.cuda.get_rng_state(device)
