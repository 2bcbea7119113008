"""How the field trains on small images, as the yardstick of `training.py`.

Images go one by one through Pillow and torchvision's transforms in worker processes, a batch is
collated and copied to the device, the network runs eagerly in float32, and the loss is read every
step. torchvision does the transforms where it is installed; else the same steps stand here, over
the same Pillow calls.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from labelproof.losses import Loss

__all__ = ["field_steps"]

try:
    from torchvision import transforms as torchvision_transforms  # pyright: ignore
except ImportError:
    torchvision_transforms: Any = None

Transform = Callable[[Any], Any]


def field_steps(
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    network: nn.Module,
    loss: Loss,
    *,
    device: torch.device,
    batch_size: int,
    augment: tuple[str, ...],
    mean: tuple[float, ...],
    std: tuple[float, ...],
    learning_rate: float,
    weight_decay: float,
) -> Iterator[int]:
    """Train for ever; yields the number of images after each step."""
    network = network.to(device)
    loss = loss.to(device)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=learning_rate, momentum=0.9, weight_decay=weight_decay
    )
    loader = DataLoader(
        ImageTransforms(images, labels, field_transform(augment, mean, std)),
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=min(10, os.cpu_count() or 1),
        pin_memory=device.type == "cuda",
    )
    while True:
        network.train()
        for batch, targets in loader:
            batch, targets = batch.to(device), targets.to(device)
            optimizer.zero_grad()
            value = loss(network(batch), targets)
            value.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            value.item()
            yield len(targets)


class ImageTransforms(Dataset[tuple[Tensor, int]]):
    """Pillow images through a transform, one at a time."""

    def __init__(
        self, images: NDArray[np.uint8], labels: NDArray[np.int64], transform: Transform
    ) -> None:
        channels_last = images.transpose(0, 2, 3, 1)
        self.images = channels_last[..., 0] if images.shape[1] == 1 else channels_last
        self.labels = labels
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = Image.fromarray(np.ascontiguousarray(self.images[index]))
        return self.transform(image), int(self.labels[index])


def field_transform(
    augment: tuple[str, ...], mean: tuple[float, ...], std: tuple[float, ...]
) -> Transform:
    """Zero-pad 4 and crop, flip, rotate up to 20 degrees, as far as named; then normalise."""
    if torchvision_transforms is not None:
        library = torchvision_transforms
        known = {
            "crop": lambda: library.RandomCrop(32, padding=4),
            "flip": library.RandomHorizontalFlip,
            "rotation": lambda: library.RandomRotation(20),
        }
        chosen = [known[name]() for name in augment]
        return library.Compose([*chosen, library.ToTensor(), library.Normalize(mean, std)])
    steps = {"crop": _crop, "flip": _flip, "rotation": _rotate}
    return PillowTransform([steps[name] for name in augment], mean, std)


class PillowTransform:
    """What torchvision's `Compose` of these steps does; a class, so that workers can pickle it."""

    def __init__(
        self, steps: list[Transform], mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        self.steps = steps
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, image: Image.Image) -> Tensor:
        for step in self.steps:
            image = step(image)
        array = np.array(image)
        pixels = torch.from_numpy(array if array.ndim == 3 else array[:, :, None])
        tensor = pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255)
        return tensor.sub_(self.mean).div_(self.std)


def _crop(image: Image.Image) -> Image.Image:
    width, height = image.size
    padded = ImageOps.expand(image, border=4, fill=0)
    left, above = random.randint(0, 8), random.randint(0, 8)  # noqa: S311
    return padded.crop((left, above, left + width, above + height))


def _flip(image: Image.Image) -> Image.Image:
    mirrored = random.random() < 0.5  # noqa: S311
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else image


def _rotate(image: Image.Image) -> Image.Image:
    return image.rotate(random.uniform(-20, 20))  # noqa: S311
