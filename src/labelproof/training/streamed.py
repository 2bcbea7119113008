"""Batches out of images that are decoded while the network trains on those before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from labelproof.data.dataset import Dataset
from labelproof.training.augmentation import Augmentation, augment_images, prepare_images
from labelproof.training.feed import DeviceInputs, EpochPlan, Feed, Fetched, Labels
from labelproof.training.streaming import StreamedImages

__all__ = ["StreamedFeed", "StreamedSet"]


class StreamedSet(DeviceInputs):
    """A dataset whose images come to the device batch by batch.

    Args:
        dataset: Its images are decoded lazily, or are too many for the device.
        device: Where the batches go.
        augmentation: Of the training images; with a resized crop all are brought to its size.
        workers: Processes that decode.
    """

    def __init__(
        self, dataset: Dataset, device: torch.device, augmentation: Augmentation, *, workers: int
    ):
        super().__init__(dataset, device)
        self.augmentation = augmentation
        self.workers = workers
        self._train = self._stream("train")
        self._test = self._stream("test") if self.has_test else None

    @property
    def resident(self) -> bool:
        """Not on the device."""
        return False

    def make_feed(
        self,
        augmentation: Augmentation,
        count: int,
        *,
        labels: Labels,
        dtype: torch.dtype,
        batch_size: int,
    ) -> Feed:
        """What gives a run its batches."""
        return StreamedFeed(self, batch_size, labels=labels, dtype=dtype)

    def test_batches(self, size: int, *, crop: int = 0) -> Iterator[Tensor]:
        """The test images in order, ready for a network; the crops are cut by the workers."""
        if self._test is None:
            return
        yield from self._prepared(self._test.batches(range(len(self.dataset.test)), size))

    def held_batches(self, held: Tensor, size: int, *, crop: int = 0) -> Iterator[Tensor]:
        """Training images that are held out, as test images are given."""
        yield from self._prepared(self._train.batches(held.cpu().numpy(), size))

    def _prepared(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        for images in batches:
            on_device = images.to(self.device, non_blocking=True)
            yield prepare_images(on_device, mean=self.mean, std=self.std)

    def close(self) -> None:
        """End the processes."""
        self._train.close()
        if self._test is not None:
            self._test.close()

    def _stream(self, split: str) -> StreamedImages:
        images = self.dataset.splits[split].images
        return StreamedImages(images, self.augmentation, workers=self.workers, device=self.device)


class StreamedFeed(Feed):
    """Brings one batch after the other to a place on the device that stays the same.

    Args:
        images: Where they come from.
        batch_size: Most examples of a step.
        labels: Of all training examples.
        dtype: In which the network takes its inputs.
    """

    def __init__(
        self,
        images: StreamedSet,
        batch_size: int,
        *,
        labels: Labels,
        dtype: torch.dtype,
    ):
        super().__init__(images.augmentation, labels)
        self.images = images
        self.dtype = dtype
        device = images.device
        shape = (batch_size, *images._train.shape)
        self.pixels = torch.zeros(shape, dtype=torch.uint8, device=device)
        self.indices = torch.zeros(batch_size, dtype=torch.int64, device=device)
        self.draws = torch.zeros(batch_size, self.augmentation.num_draws, device=device)
        self._arriving: Iterator[tuple[Tensor, Tensor, Tensor]] = iter(())

    def load(self, plan: EpochPlan, *, start: int = 0) -> None:
        """Take over an epoch's plan, with the first `start` steps behind it."""
        sizes = [share.local for share in plan.steps]
        done = sum(sizes[:start])
        self._arriving = self._batches(plan.order[done:], plan.draws[done:], sizes[start:])

    def _batches(
        self, order: Tensor, draws: Tensor, sizes: list[int]
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        images = self.images._train.batches(order.numpy(), sizes, draws=draws)
        return zip(images, order.split(sizes), draws.split(sizes), strict=True)

    def stage(self) -> None:
        """Copy the next batch to its place."""
        for mine, came in zip(
            (self.pixels, self.indices, self.draws), next(self._arriving), strict=True
        ):
            mine[: len(came)].copy_(came, non_blocking=True)

    def fetch(self, size: int) -> Fetched:
        """The `size` examples that were staged."""
        indices = self.indices[:size]
        inputs = augment_images(
            self.pixels[:size],
            self.draws[:size],
            self.augmentation,
            mean=self.images.mean,
            std=self.images.std,
            dtype=self.dtype,
        )
        return Fetched(inputs, indices, *self.labels.at(indices))

    @property
    def state(self) -> dict[str, Tensor]:
        """Nothing: a batch is staged before each step."""
        return {}
