"""One run over several processes, each with its share of every batch.

torch's DistributedDataParallel does the work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from labelproof.training.execution import Execution, interrupts
from labelproof.training.metrics import Tally


def launched() -> bool:
    """Whether `torchrun` started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def taking_part(execution: Execution) -> Iterator[Execution]:
    """Join the other processes, where there are any, for the length of the block.

    Args:
        execution: How this process alone would run.

    Yields:
        The execution with this process's device and rank.
    """
    if not launched():
        yield execution
        return
    device = execution.device
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # A process whose peers never arrive waits for them in native code, where Python's own handlers
    # do not run; and there is nothing to save yet.
    with interrupts(signal.SIG_DFL):
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        # Gradients are summed by hooks inside the backward pass, which a recorded graph leaves out.
        yield replace(
            execution,
            device=device,
            record=False,
            rank=torch.distributed.get_rank(),
            world_size=torch.distributed.get_world_size(),
        )
    finally:
        torch.distributed.destroy_process_group()


def share_gradients(network: nn.Module) -> nn.Module:
    """Let a network's gradients, and the statistics of its batch norms, be those of all processes.

    The network's parameters stay its own, under their names.

    Raises:
        ValueError: The network has batch norms and is not on CUDA, where alone torch has
            synchronised ones; without them two processes would train another network.
    """
    device = next(network.parameters()).device
    if device.type == "cuda":
        count_batches(nn.SyncBatchNorm.convert_sync_batchnorm(network))
        return DistributedDataParallel(network, device_ids=[device])
    if any(isinstance(module, _BatchNorm) for module in network.modules()):
        raise ValueError(
            "network: expected one without batch norm, such as mlp, over several processes on "
            f"{device.type}; torch synchronises batch norms on CUDA alone"
        )
    return DistributedDataParallel(network)


def count_batches(network: nn.Module) -> None:
    """Give torch's synchronised batch norms the count that they require and nothing reads.

    It is no buffer: a checkpoint of several processes has the same tensors as one of a single
    process.
    """
    for module in network.modules():
        if isinstance(module, nn.SyncBatchNorm) and module.num_batches_tracked is None:
            module._buffers.pop("num_batches_tracked")
            device = next((each.device for each in module.parameters()), None)
            module.num_batches_tracked = torch.zeros((), dtype=torch.int64, device=device)


def sum_tally(tally: Tally) -> None:
    """Make what each process counted that of all of them; the first step that broke is theirs."""
    for tensor in (tally.sums, tally.correct, tally.held):
        torch.distributed.all_reduce(tensor)
    torch.distributed.all_reduce(tally.diverged, op=torch.distributed.ReduceOp.MAX)


def take_from_first(buffers: Iterable[Tensor]) -> None:
    """Let what the first process concluded from its share, such as a noise rate, hold for all."""
    for buffer in buffers:
        torch.distributed.broadcast(buffer, src=0)


def anyone(wish: bool, device: torch.device) -> bool:
    """Whether any of the processes wishes it; all of them get the same answer."""
    flag = torch.tensor(int(wish), device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag)
