"""One run over several processes, each with its share of every batch.

torch's DistributedDataParallel does the work. What it leaves open is the batch norm on the CPU,
where torch has no synchronised one: without it a network in two processes is another network.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from labelproof.training.execution import Execution
from labelproof.training.metrics import Tally
from labelproof.training.stop_request import interrupts


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
    """
    device = next(network.parameters()).device
    if device.type == "cuda":
        count_batches(nn.SyncBatchNorm.convert_sync_batchnorm(network))
    else:
        _synchronize_batch_norms(network)
    devices = [device] if device.type == "cuda" else None
    return DistributedDataParallel(network, device_ids=devices)


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


class SynchronizedBatchNorm(_BatchNorm):
    """A batch norm over the examples of all processes, on any device."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise with the mean and variance of the whole batch."""
        if not self.training:
            return super().forward(input)
        axes = [axis for axis in range(input.ndim) if axis != 1]
        shape = [1, -1] + [1] * (input.ndim - 2)
        # In 16 bits a sum over a batch is worth little, and its count may be no number at all.
        values = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        count = _summed(values.new_tensor(input.numel() / input.shape[1]))
        mean = _summed(values.sum(axes)) / count
        centred = values - mean.view(shape)
        # A pass of its own: the square's mean less the mean's square loses half of the digits.
        variance = _summed(centred.square().sum(axes)) / count
        self._follow(mean.detach(), variance.detach() * count / (count - 1))
        scale = torch.rsqrt(variance + self.eps)
        if self.weight is not None:
            scale = scale * self.weight
        output = centred * scale.view(shape)
        if self.bias is not None:
            output = output + self.bias.view(shape)
        return output.to(input.dtype)

    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        if self.running_mean is None or self.running_var is None or self.momentum is None:
            return
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of axes will do."""


class _Sum(torch.autograd.Function):
    """A sum over processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        torch.distributed.all_reduce(total)
        return total


def _summed(values: Tensor) -> Tensor:
    return _Sum.apply(values)  # pyright: ignore[reportReturnType]


def _synchronize_batch_norms(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, _BatchNorm) and not isinstance(child, SynchronizedBatchNorm):
            norm = SynchronizedBatchNorm(
                child.num_features,
                child.eps,
                child.momentum,
                child.affine,
                child.track_running_stats,
            )
            # The same parameters and buffers, not copies: the optimiser holds on to them.
            norm._parameters, norm._buffers = child._parameters, child._buffers
            norm.train(child.training)
            setattr(module, name, norm)
        else:
            _synchronize_batch_norms(child)
