"""Images that do not fit on the device, decoded batch by batch by worker processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils import data
from torch.utils.data import DataLoader

from labelproof.data.dataset import Dataset, Images
from labelproof.data.images import ImageFiles
from labelproof.data.notices import readable
from labelproof.training.augmentation import Augmentation, prepare_images
from labelproof.training.batches import CHUNK, DeviceInputs, EpochPlan, Feed, Fetched
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import interrupts
from labelproof.training.geometry import centre_box, choose_box


class StreamedImages:
    """Batches of images that are decoded, cropped and resized on demand.

    Worker processes start with the first batch and run until `close`; they receive each epoch's
    order and draws. They are spawned, not forked, so this process may use a GPU, and they end when
    it ends. An array needs no decoding and no workers.

    The batches are inputs of `gather_images` in training and of `prepare_images` in evaluation.

    Args:
        images: A lazy source, which must be picklable, or an array `(N, C, H, W)`.
        augmentation: With a resized crop, images may have any size; without, all must have the
            first one's shape.
        workers: Number of processes; 0 decodes in this one, with the same result.
        device: Where the batches will go; for CUDA they are in pinned memory.
    """

    def __init__(
        self,
        images: Images,
        augmentation: Augmentation | None = None,
        *,
        workers: int = 0,
        device: torch.device | str = "cpu",
    ):
        self.images = images
        self.augmentation = augmentation or Augmentation()
        self.workers = 0 if isinstance(images, np.ndarray) else workers
        # The batches to decode; the sampler stays in this process, so they may change.
        self._queue: list[_Item] = []
        channels, height, width = images[0].shape
        size = self.augmentation.resized_crop
        self.shape = (size, size, channels) if size else (height, width, channels)
        """Height, width and channels of every image in a batch."""
        self._loader: DataLoader[Any] | None = DataLoader(
            _Decoder(images, size, self.shape),
            batch_size=None,
            sampler=self._queue,
            num_workers=self.workers,
            multiprocessing_context="spawn" if self.workers else None,
            persistent_workers=self.workers > 0,
            worker_init_fn=_prepare_worker,
            pin_memory=torch.device(device).type == "cuda",
            # Otherwise it draws from torch's global generator at every epoch.
            generator=torch.Generator(),
        )

    def batches(
        self,
        order: Sequence[int] | NDArray[np.int64] | Tensor,
        batch_size: int | Sequence[int],
        *,
        draws: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """Iterate over images in the given order. A new call ends the previous one.

        Args:
            order: Indices of the images, `(n)`.
            batch_size: Size of all batches but the last, which may be smaller; or of each.
            draws: A row of `draw_augmentation` for each entry of `order`, `(n, K)`, for the resized
                crops; without it the centre is cropped, as in evaluation.

        Yields:
            `(B, H, W, C)`, uint8, on the host.

        Raises:
            UnreadableImageError: An image cannot be decoded.
            ValueError: An image has another shape than the first.
        """
        assert self._loader is not None, "closed"  # noqa: S101
        index = torch.as_tensor(order, dtype=torch.int64)
        sizes: Any = batch_size
        indices = [part.numpy() for part in index.split(sizes)] if len(index) else []
        boxes: list[Any] = [None] * len(indices)
        if draws is not None and self.augmentation.resized_crop and indices:
            drawn = draws[:, self.augmentation.columns["resized_crop"]].cpu()
            boxes = [part.numpy() for part in drawn.split(sizes)]
        self._queue[:] = zip(indices, boxes, strict=True)
        return self._run(self._loader)

    def close(self) -> None:
        """Stop the worker processes."""
        self._loader = None

    def _run(self, loader: DataLoader[Any]) -> Iterator[Tensor]:
        if not self._queue:
            return
        with interrupts(signal.SIG_IGN):
            batches = iter(loader)
        while True:
            try:
                batch = next(batches, None)
            except RuntimeError as error:
                if "exited unexpectedly" not in str(error):
                    raise
                raise RuntimeError(
                    "the processes that decode images ended; each runs the script that started "
                    "them again, so a script has to call labelproof under "
                    "if __name__ == '__main__':, or with workers=0"
                ) from error
            if batch is None:
                return
            if isinstance(batch, Exception):
                raise batch
            yield batch


_Item = tuple[NDArray[np.int64], "NDArray[np.float32] | None"]


class _Decoder(data.Dataset[Any]):
    """Decodes a whole batch, in a worker or in this process."""

    def __init__(self, images: Images, size: int, shape: tuple[int, int, int]):
        self.images = images
        self.size = size
        self.shape = shape

    def __getitem__(self, item: _Item) -> Tensor | Exception:
        index, boxes = item
        if isinstance(self.images, np.ndarray) and not self.size:
            return torch.from_numpy(self.images[index].transpose(0, 2, 3, 1).copy())
        batch = np.empty((len(index), *self.shape), np.uint8)
        try:
            for position, number in enumerate(index.tolist()):
                batch[position] = self._decode(number, None if boxes is None else boxes[position])
        except ValueError as error:
            # Returned, because the loader changes the message of what a worker raises.
            return error
        return torch.from_numpy(batch)

    def _decode(self, number: int, draws: NDArray[np.float32] | None) -> NDArray[np.uint8]:
        image = self.images[number].transpose(1, 2, 0)
        if self.size:
            height, width, _ = image.shape
            if draws is None:
                box = centre_box(height, width, self.size)
            else:
                box = choose_box(draws, height, width)
            image = resize_box(image, box, self.size)
        if image.shape != self.shape:
            file = self.images.files[number] if isinstance(self.images, ImageFiles) else ""
            named = f": {readable(file if isinstance(file, str) else file.name)}" if file else ""
            raise ValueError(
                f"image {number}{named}: expected the first image's height, width and channels "
                f"{self.shape}, got {image.shape}; --augmentation resized-crop:SIZE brings all to "
                "one size"
            )
        return image


def resize_box(
    image: NDArray[np.uint8], box: tuple[float, float, float, float], size: int
) -> NDArray[np.uint8]:
    """Resize a box of an image `(H, W, C)` to a square, with Pillow's bilinear filter."""
    coloured = image.shape[2] == 3
    layers = [image] if coloured else image.transpose(2, 0, 1)
    resized = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(layer)).resize(
                (size, size), Image.Resampling.BILINEAR, box=box, reducing_gap=2.0
            )
        )
        for layer in layers
    ]
    return resized[0] if coloured else np.stack(resized, axis=2)


def _prepare_worker(_: int) -> None:
    # Ctrl-C reaches every process of the terminal; only the parent handles it. The loader itself
    # limits workers to one torch thread and ends them when the parent is gone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class StreamedSet(DeviceInputs):
    """A dataset whose images are copied to the device batch by batch."""

    resident = False

    def __init__(
        self, dataset: Dataset, device: torch.device, augmentation: Augmentation, *, workers: int
    ):
        super().__init__(dataset, device)
        self.streams = {
            name: StreamedImages(split.images, augmentation, workers=workers, device=device)
            for name, split in dataset.splits.items()
            if name in ("train", "test")
        }

    def evaluated(self, held: Tensor | None = None, *, crop: int = 0) -> Iterator[Tensor]:
        """The test images, or the training images `held`; the workers crop them."""
        if held is None:
            batches = self.streams["test"].batches(range(len(self.dataset.test)), CHUNK)
        else:
            batches = self.streams["train"].batches(held.cpu().numpy(), CHUNK)
        for images in batches:
            on_device = images.to(self.device, non_blocking=True)
            yield prepare_images(on_device, mean=self.mean, std=self.std)

    def feed(self, examples: Examples, configuration: Configuration) -> Feed:
        """The batches of a run."""
        return StreamedFeed(self, examples, configuration)

    def close(self) -> None:
        """Stop the worker processes."""
        for stream in self.streams.values():
            stream.close()


class StreamedFeed(Feed):
    """Copies one batch after the other into the same buffers on the device."""

    def __init__(self, inputs: StreamedSet, examples: Examples, configuration: Configuration):
        super().__init__(inputs, examples, configuration)
        device, size = inputs.device, configuration.batch_size
        self.stream = inputs.streams["train"]
        self.pixels = torch.zeros((size, *self.stream.shape), dtype=torch.uint8, device=device)
        self.indices = torch.zeros(size, dtype=torch.int64, device=device)
        self.draws = torch.zeros(size, self.augmentation.num_draws, device=device)
        self._arriving: Iterator[tuple[Tensor, Tensor, Tensor]] = iter(())

    def load(self, plan: EpochPlan, *, start: int = 0) -> None:
        """Load an epoch's plan, from step `start` on."""
        done = sum(share.local for share in plan.steps[:start])
        sizes = [share.local for share in plan.steps[start:]]
        order, draws = plan.order[done:], plan.draws[done:]
        images = self.stream.batches(order.numpy(), sizes, draws=draws)
        self._arriving = zip(images, order.split(sizes), draws.split(sizes), strict=True)

    def stage(self) -> None:
        """Copy the next batch to the device."""
        buffers = (self.pixels, self.indices, self.draws)
        for buffer, values in zip(buffers, next(self._arriving), strict=True):
            buffer[: len(values)].copy_(values, non_blocking=True)

    def fetch(self, size: int) -> Fetched:
        """The `size` staged examples."""
        inputs = self.augment(self.pixels[:size], None, self.draws[:size])
        return self.with_labels(inputs, self.indices[:size])
