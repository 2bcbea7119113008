"""Whether data can be trained on as is asked for, told before anything is written or decoded."""

from __future__ import annotations

import torch

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles
from labelproof.models.text import make_network
from labelproof.noise import parse_noise
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.provenance import describe

__all__ = ["check_feasible"]


def check_feasible(dataset: Dataset, configuration: Configuration) -> None:
    """Refuse what a training would refuse only once it begins.

    A network that is not for such inputs, an augmentation of rows or one that leaves images of
    different sizes as they are, noise that cannot be put on these labels.

    Args:
        dataset: What is to be learned from.
        configuration: How.

    Raises:
        ValueError: It cannot be done; the message says why.

    Example:
        >>> from labelproof.data import load_digits
        >>> check_feasible(load_digits(), Configuration("digits", network="cnn8"))
        >>> check_feasible(load_digits(), Configuration("digits", noise="human:worse"))
        Traceback (most recent call last):
            ...
        ValueError: noise: expected one that is made here, got human:worse, which needs a file: ...
    """
    augmentation = parse_augmentation(configuration.augmentation)
    shape = dataset.input_shape if dataset.tabular else describe(configuration, dataset).input_shape
    try:
        # Without pretrained weights, which may have to be downloaded.
        make_network(
            configuration.network,
            num_classes=dataset.num_classes,
            input_shape=shape,
            generator=torch.Generator(),
            pretrained=False,
        )
    except ValueError as error:
        if not dataset.tabular or not str(error).startswith("image_shape"):
            raise
        raise ValueError(
            "network: expected one for the rows of a table, such as mlp(hidden=100,depth=1), got "
            f"{configuration.network}, which is for images"
        ) from None
    if dataset.tabular and augmentation.columns:
        raise ValueError(f"augmentation: expected none for the rows of a table, got {augmentation}")
    if not augmentation.resized_crop and _sizes_differ(dataset):
        raise ValueError(
            f"augmentation: expected resized-crop:SIDE for images of different sizes, got "
            f"{augmentation}"
        )
    noise = parse_noise(configuration.noise)
    if noise.kind == "human":
        raise ValueError(
            f"noise: expected one that is made here, got {noise}, which needs a file: 'labelproof "
            "train' takes it with --human-labels"
        )
    # Instance noise looks at pixels, which are not decoded yet, and is for any labels.
    if noise.kind != "instance":
        choose_examples(configuration, dataset)


def _sizes_differ(dataset: Dataset) -> bool:
    shape = dataset.input_shape
    return any(
        not (images.one_size and images[0].shape == shape)
        for images in (split.images for split in dataset.splits.values())
        if isinstance(images, ImageFiles)
    )
