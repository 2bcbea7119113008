"""What a network says about images it has not learned from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from labelproof.training.feed import DeviceImages
from labelproof.training.precision import autocast

__all__ = ["CHUNK", "count_correct", "evaluating", "predict_test"]

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


def count_correct(
    network: nn.Module,
    images: DeviceImages,
    labels: Tensor,
    *,
    precision: str,
    crop: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> Tensor:
    """How many test images this process's share of them is predicted right, as a tensor."""
    correct = torch.zeros((), dtype=torch.int64, device=labels.device)
    chunks = zip(images.test_batches(CHUNK, crop=crop), labels.split(CHUNK), strict=True)
    with evaluating(network):
        for number, (inputs, target) in enumerate(chunks):
            if number % world_size != rank:
                continue
            with autocast(precision, inputs.device):
                logits = network(inputs)
            correct += (logits.argmax(dim=1) == target).sum()
    return correct


def predict_test(
    network: nn.Module, images: DeviceImages, *, precision: str, crop: int = 0
) -> Tensor:
    """Logits of all test images in order, `(N, C)` float32 on the CPU."""
    found = []
    with evaluating(network):
        for inputs in images.test_batches(CHUNK, crop=crop):
            with autocast(precision, inputs.device):
                found.append(network(inputs).float().cpu())
    return torch.cat(found)
