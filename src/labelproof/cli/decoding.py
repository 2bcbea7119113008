"""Image files brought to the size that is looked at, with progress, before a training begins."""

from __future__ import annotations

import torch
from rich.console import Console

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles
from labelproof.fitting.pixels import bring_to_memory, bring_to_size
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import Configuration

__all__ = ["decode_images"]

_MEGABYTES = {"cpu": 400, "cuda": 4000, "mps": 1000}


def decode_images(
    dataset: Dataset,
    configuration: Configuration,
    device: torch.device,
    console: Console,
    *,
    megabytes: int | None = None,
    share: float = 1.0,
) -> Dataset:
    """The same dataset with its image files, if it has any, at the size that is looked at.

    Args:
        dataset: What is to be trained on.
        configuration: Its augmentation says how large crops are.
        device: Decides how much memory images may take.
        console: Where progress is shown.
        megabytes: How much they may take, where that is given; beyond, they stay files.
        share: Which part of all images these are; they may take as much of the memory.
    """
    crop = parse_augmentation(configuration.augmentation).resized_crop
    if not any(isinstance(each.images, ImageFiles) for each in dataset.splits.values()):
        return dataset
    if megabytes is None:
        megabytes = _MEGABYTES.get(device.type, _MEGABYTES["cpu"])
    memory = int((megabytes << 20) * share)
    with console.status("Decoding images") as status:

        def progress(done: int, total: int) -> None:
            status.update(f"Decoding images: {done:,} of {total:,}")

        if not crop:
            return bring_to_memory(dataset, memory=memory, progress=progress)
        return bring_to_size(dataset, crop, memory=memory, progress=progress)
