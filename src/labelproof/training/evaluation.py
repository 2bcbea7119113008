"""What a network says about images it has not learned from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from labelproof.training.execution import autocast

CHUNK = 500
"""Images at a time: enough to keep a GPU busy, few enough to need little memory."""


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Inside, the network is in evaluation mode and nothing is remembered for gradients."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)


def count_predictions(
    network: nn.Module,
    batches: Iterable[Tensor],
    labels: Tensor,
    *,
    num_classes: int,
    precision: str,
    rank: int = 0,
    world_size: int = 1,
) -> Tensor:
    """How often each class is predicted rightly, and how often at all, as a tensor `(2, C)`.

    Args:
        network: What predicts.
        batches: Inputs, `CHUNK` at a time; of several processes each looks at its share of them.
        labels: Their labels, `(N)`, on the device.
        num_classes: Number of classes.
        precision: In which the network computes.
        rank: Which process this is.
        world_size: How many there are.
    """
    counts = torch.zeros(2, num_classes, dtype=torch.int64, device=labels.device)
    with evaluating(network):
        for number, (inputs, target) in enumerate(zip(batches, labels.split(CHUNK), strict=True)):
            if number % world_size != rank:
                continue
            with autocast(precision, inputs.device):
                predicted = network(inputs).argmax(dim=1)
            right = (predicted == target).to(torch.int64)
            counts[0].index_add_(0, predicted, right)
            counts[1].index_add_(0, predicted, torch.ones_like(right))
    return counts


def predict_logits(network: nn.Module, batches: Iterable[Tensor], *, precision: str) -> Tensor:
    """Logits of all inputs in order, `(N, C)` float32 on the CPU."""
    found = []
    with evaluating(network):
        for inputs in batches:
            with autocast(precision, inputs.device):
                found.append(network(inputs).float().cpu())
    return torch.cat(found)
