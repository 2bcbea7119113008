"""A step recorded once and replayed: on CUDA the host then only says "again".

Each run records on a stream of its own. Recorded on a shared one, as torch does unless told, graphs
share the workspaces of cuBLAS and the state of the random numbers, and replaying two at once
corrupts both: a fast and wrong result that `benchmarks/packing.py` looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

WARM_UPS = 3
"""Plain calls before a recording: compilation, the choice of algorithms and lazy allocations."""


class Recorder:
    """Records functions of one run into graphs that share memory, and replays them.

    Args:
        stream: The run's own stream.
        state: All tensors that the recorded functions change; they are put back after the plain
            calls that come before a recording.
        generators: Whatever the functions draw from; the plain calls move them on.
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
