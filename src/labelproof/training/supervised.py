"""Train a network on images and labels, an epoch at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelproof.data.dataset import Dataset
from labelproof.losses import Loss, SparseRegularized, sparse_rate

__all__ = ["Batches", "EpochMetrics", "Recipe", "predict", "train_epochs"]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: SGD with momentum, a cosine to zero, clipped gradients."""

    epochs: int = 40
    batch_size: int = 64
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 1e-3
    clip_norm: float = 5.0


@dataclass(frozen=True)
class EpochMetrics:
    """What one epoch came to.

    Attributes:
        epoch: Counted from 0.
        train_loss: Mean loss over the epoch's batches.
        sparse_rate: Share of training outputs, sharpened as the loss sees them, above 0.99.
        test_accuracy: Percent, on clean labels.
        weight: The regulariser's weight, 0 for a loss without one.
        learning_rate: As used in this epoch.
        seconds: Of this epoch.
    """

    epoch: int
    train_loss: float
    sparse_rate: float
    test_accuracy: float
    weight: float
    learning_rate: float
    seconds: float

    def as_dict(self) -> dict[str, float]:
        """For a record."""
        return asdict(self)


class Batches:
    """A dataset's images as normalised float tensors, with the labels to learn from.

    Args:
        dataset: Where the images come from.
        labels: Labels to train on, `(N)`; the dataset's own are for a clean run.
    """

    def __init__(self, dataset: Dataset, labels: NDArray[np.int64]):
        mean = torch.tensor(dataset.mean).view(1, -1, 1, 1)
        std = torch.tensor(dataset.std).view(1, -1, 1, 1)

        def prepare(images: NDArray[np.uint8]) -> Tensor:
            return (torch.from_numpy(images).float() / 255 - mean) / std

        self.train_images = prepare(dataset.train.array)
        self.train_labels = torch.from_numpy(labels)
        self.test_images = prepare(dataset.test.array)
        self.test_labels = torch.from_numpy(dataset.test.labels)


def train_epochs(
    network: nn.Module, loss: Loss, data: Batches, recipe: Recipe, *, generator: torch.Generator
) -> Iterator[EpochMetrics]:
    """Train, and yield what each epoch came to as soon as it is over.

    Args:
        network: Trained in place.
        loss: Any loss of this package; its schedules are moved here.
        data: Images and labels.
        recipe: Epochs, batch size and optimiser.
        generator: Source of the order of the images.
    """
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=recipe.learning_rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.epochs)
    for epoch in range(recipe.epochs):
        start = time.perf_counter()
        loss.set_epoch(epoch)
        learning_rate = float(schedule.get_last_lr()[0])
        train_loss, sparse = _train_epoch(network, loss, data, recipe, optimizer, generator)
        schedule.step()
        accuracy = (predict(network, data.test_images).argmax(1) == data.test_labels).float().mean()
        yield EpochMetrics(
            epoch=epoch,
            train_loss=train_loss,
            sparse_rate=sparse,
            test_accuracy=100 * accuracy.item(),
            weight=loss.weight if isinstance(loss, SparseRegularized) else 0.0,
            learning_rate=learning_rate,
            seconds=time.perf_counter() - start,
        )


@torch.no_grad()
def predict(network: nn.Module, images: Tensor) -> Tensor:
    """Logits of the images in evaluation mode, `(N, C)`."""
    network.eval()
    return torch.cat([network(chunk) for chunk in images.split(512)])


def _train_epoch(
    network: nn.Module,
    loss: Loss,
    data: Batches,
    recipe: Recipe,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
) -> tuple[float, float]:
    network.train()
    total, sparse, seen = torch.zeros(()), torch.zeros(()), 0
    order = torch.randperm(len(data.train_labels), generator=generator)
    for chosen in order.split(recipe.batch_size):
        if len(chosen) == 1:
            continue  # a batch norm cannot learn from a single image left over at the end
        value, rate = _loss_and_sparse_rate(
            loss, network(data.train_images[chosen]), data.train_labels[chosen]
        )
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimizer.step()
        total += value.detach() * len(chosen)
        sparse += rate * len(chosen)
        seen += len(chosen)
    return total.item() / seen, sparse.item() / seen


def _loss_and_sparse_rate(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if isinstance(loss, SparseRegularized):
        parts = loss.parts(logits, target)
        return parts.total, parts.sparse_rate
    return loss(logits, target), sparse_rate(torch.log_softmax(logits.detach(), 1)).mean()
