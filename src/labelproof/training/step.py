"""The parts of a training step.

`Functions` are the functions that it calls, compiled or not. `Recorder` records a step as a CUDA
graph and replays it. `Direct` computes the gradient of a small network on the CPU without autograd.
`GlobalRandomState` gives a run its own state of torch's global generators.
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

_MAX_CONCATENATED = 64
"""Largest number of gradients that one compiled kernel concatenates."""

_UNTUNED = {"coordinate_descent_tuning": False}
"""Logits are small compared to activations, so tuning the loss's kernels gains little and takes
time, again for every exponent in a sweep."""


def compute_loss(
    algorithm: Algorithm,
    tally: Tally,
    logits: tuple[Tensor, ...],
    fetched: Fetched,
    scales: Sequence[Tensor] = (),
) -> Tensor:
    """The loss of a batch, summed over the networks; adds it to the tally.

    If gradients are scaled, each network's loss is multiplied by its own scale.
    """
    batch = Batch(logits, fetched.target, fetched.indices, fetched.weight)
    losses, parts = algorithm.objectives(batch)
    total = torch.stack(losses).sum() if losses[1:] else losses[0]
    tally.add(total.detach() / len(losses), parts, logits[0], fetched)
    if not scales:
        return total
    return torch.stack([loss * scale for loss, scale in zip(losses, scales, strict=True)]).sum()


def predict(
    feed: Feed, networks: Sequence[Callable[..., Tensor]], size: int, precision: str
) -> tuple[Fetched, tuple[Tensor, ...]]:
    """The next batch and the logits of each network, in float32."""
    fetched = feed.fetch(size)
    with autocast(precision, fetched.inputs.device):
        logits = tuple(network(fetched.inputs) for network in networks)
    return fetched, tuple(each.float() for each in logits)


class Functions(NamedTuple):
    """The functions that a step calls."""

    networks: Sequence[Callable[..., Tensor]]
    """The networks of the algorithm, wrapped or not."""
    predict: Callable[..., Any] = predict
    compute_loss: Callable[..., Any] = compute_loss
    update: Callable[..., Any] = Optimizer.update

    def compiled(self, networks: Sequence[nn.Module], *, draws: bool, shared: bool) -> Functions:
        """Compiled for batches of one size.

        Args:
            networks: The networks, not wrapped.
            draws: Whether the loss draws from its own generator, which cannot be compiled as one
                graph.
            shared: Whether the backward pass averages gradients over processes. Then torch requires
                that the wrapped network itself is compiled.
        """
        _allow_many_variants()
        make: Any = partial(torch.compile, dynamic=False)
        fusing = fusing_options(networks) or None
        concatenating = {"max_pointwise_cat_inputs": _MAX_CONCATENATED}
        return Functions(
            [make(each, options=fusing) for each in self.networks] if shared else self.networks,
            self.predict if shared else make(self.predict, options=fusing),
            self.compute_loss if draws else make(self.compute_loss, options=_UNTUNED),
            make(self.update, options=concatenating),
        )


def take_gradient(parameter: nn.Parameter) -> Tensor:
    """Remove a parameter's gradient and return it; zeros if it has none."""
    gradient = parameter.grad
    parameter.grad = None
    return torch.zeros_like(parameter) if gradient is None else gradient


def _allow_many_variants() -> None:
    """Raise torch's limit of eight compiled variants of a function, of which each loss is one."""
    import torch._dynamo

    config: Any = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    setattr(config, name, max(getattr(config, name), 128))


_LARGEST_WEIGHT = 1 << 16
"""Elements of a weight. Copying a larger one costs more than it saves."""

_LOG_SPARSE = math.log(SPARSE)

# Torch's own gradient of ReLU, which has no Python name; looked up once.
_relu_backward = torch.ops.aten.threshold_backward.default


def make_direct(
    network: nn.Module, algorithm: Algorithm, optimizer: Optimizer, feed: Feed, tally: Tally
) -> Direct | None:
    """The direct step of a float32 run on the CPU; `None` if the run needs autograd."""
    if type(network) is not MLP or type(algorithm) is not Supervised:
        return None
    layers = [each for each in network.modules() if isinstance(each, nn.Linear)]
    normalised = any(isinstance(each, nn.BatchNorm1d) for each in network.modules())
    if normalised or any(each.weight.numel() > _LARGEST_WEIGHT for each in layers):
        return None
    if not all(each.requires_grad for each in network.parameters()):
        return None
    given, loss = feed.given, algorithm.loss
    # The loss may ignore some labels, which `Direct` would count.
    all_count = bool((given >= 0).all()) and not bool((given == loss.ignore_index).any())
    if given.device.type != "cpu" or not has_gradient(loss) or not all_count:
        return None
    return Direct(layers, loss, optimizer, tally)


class Direct:
    """The gradient of a batch, computed without autograd.

    On the CPU autograd costs more than the arithmetic of a small network: for two layers of a
    hundred units it takes half of a step. If the network is linear layers with ReLU between and the
    loss depends on one label's probability, both gradients are a few lines, and a step is 1.5 to 2
    times as fast (`benchmarks/rows.py`).
    """

    def __init__(self, layers: list[nn.Linear], loss: Loss, optimizer: Optimizer, tally: Tally):
        self.loss = loss
        self.tally = tally
        self.gradient = torch.zeros_like(optimizer.flat.values)
        self._layers = [(layer.weight, layer.bias) for layer in layers]
        views = optimizer.flat.like(self.gradient)
        by_id = {id(each): view for each, view in zip(optimizer.parameters, views, strict=True)}
        self._gradients = [(by_id[id(weight)], by_id[id(bias)]) for weight, bias in self._layers]

    def __call__(self, fetched: Fetched) -> Tensor:
        """The gradient of a batch, flat as `FlatParameters`; call it under `no_grad`."""
        *states, logits = _forward(fetched.inputs.flatten(1), self._layers)
        loss = mean_and_gradient(self.loss, logits, fetched.target, weight=fetched.weight)
        self._add_to_tally(loss, fetched)
        _backward(states, self._layers, loss.gradient, self._gradients)
        return self.gradient

    def _add_to_tally(self, loss: MeanAndGradient, fetched: Fetched) -> None:
        """As `Tally.add`, in Python numbers, which are faster here than tensor operations."""
        size, mean = len(fetched.target), float(loss.mean)
        highest, predicted = loss.log_probabilities.max(dim=1)
        parts = [float((highest > _LOG_SPARSE).sum())]
        if loss.penalty is not None and fetched.weight is None:
            assert isinstance(self.loss, SparseRegularized)  # noqa: S101
            penalty = float(loss.penalty.sum())
            parts = [size * mean - self.loss.weight * penalty, penalty, *parts]
        if fetched.clean is fetched.target:  # no label is known to be wrong
            counts = [int((fetched.target == predicted).sum()), 0, 0, size, 0]
        else:
            counts = count_fitted(predicted, fetched).tolist()
        tally = self.tally
        tally.sums += torch.tensor([size * mean, *parts, *counts], dtype=tally.sums.dtype)
        if not math.isfinite(mean) and int(tally.diverged) < 0:
            tally.diverged.copy_(tally.count)
        tally.count += 1


_Pairs = Sequence[tuple[Tensor, Tensor]]
"""For each layer, its weight and bias, or their gradients."""


def _forward(inputs: Tensor, layers: _Pairs) -> list[Tensor]:
    """The input of each layer and the output of the last."""
    # Transposed weights are copied: on ARM a view goes to a library with a setup cost per call.
    states = [inputs]
    for place, (weight, bias) in enumerate(layers):
        if place:
            states[-1].relu_()
        states.append(torch.addmm(bias, states[-1], weight.t().contiguous()))
    return states


def _backward(states: list[Tensor], layers: _Pairs, gradient: Tensor, gradients: _Pairs) -> None:
    """Write the gradients of all layers into `gradients`."""
    for layer in reversed(range(len(states))):
        weight, bias = gradients[layer]
        torch.mm(gradient.t(), states[layer], out=weight)
        torch.sum(gradient, dim=0, out=bias)
        if layer:
            gradient = gradient.mm(layers[layer][0])
            # The state is the ReLU's output, which is 0 where the gradient is.
            gradient = _relu_backward(gradient, states[layer], 0)


WARM_UPS = 3
"""Calls before recording, for compilation, cuDNN's choice of algorithms and lazy allocations."""


class Recorder:
    """Records functions of one run as CUDA graphs that share memory, and replays them.

    Each run records on its own stream. On a shared stream, torch's default, graphs share cuBLAS
    workspaces and the random state, and replaying two at once silently corrupts both;
    `benchmarks/packing.py` tests for it.
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
        # Graphs of one run never replay at the same time, so they can share scratch memory.
        self.pool = torch.cuda.graph_pool_handle()

    def replay(self, key: Any) -> None:
        """Replay what was recorded under `key`; the current stream must be the run's."""
        self.graphs[key].replay()

    def record(self, key: Any, function: Callable[[], object]) -> None:
        """Record a function under `key`; the state does not change."""
        with torch.cuda.stream(self.stream):
            for _ in range(WARM_UPS):
                # Restored after each call: an epoch of one step has no second batch.
                with self._state_restored():
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
    def _state_restored(self) -> Iterator[None]:
        saved = {name: tensor.clone() for name, tensor in self.state().items()}
        yield
        with torch.no_grad():
            for name, tensor in self.state().items():
                tensor.copy_(saved[name])


@contextmanager
def tuned() -> Iterator[None]:
    """Let cuDNN benchmark its algorithms for each shape and use the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.deterministic
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class GlobalRandomState:
    """A run's own state of torch's global generators, for networks that draw from them.

    Dropout takes no generator. The state is installed for the length of a step and the previous one
    restored, so that a run changes neither the state of other runs nor that of the program.
    """

    def __init__(self, device: torch.device, *, used: bool):
        self.used = used
        self.state: dict[str, Tensor] = {}
        self._devices = [device] if device.type == "cuda" else []
        self.seed(0)

    def seed(self, seed: int) -> None:
        """Set the state from a seed."""
        if self.used:
            self.state = {
                device.type: torch.Generator(device).manual_seed(seed).get_state()
                for device in (torch.device("cpu"), *self._devices)
            }

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Inside, torch's global generators have this run's state."""
        if not self.used:
            yield
            return
        with torch.random.fork_rng(self._devices):
            torch.set_rng_state(self.state["cpu"])
            for device in self._devices:
                torch.cuda.set_rng_state(self.state["cuda"], device)
            yield
            self.state = {"cpu": torch.get_rng_state()}
            for device in self._devices:
                self.state["cuda"] = torch.cuda.get_rng_state(device)
