"""A network and a way to train it that fit a dataset's kind and size.

What is chosen here is chosen from what can be seen without a single true label: what the inputs
are, how many, how large, and how many classes. Each choice is a plain setting of the run, so
everything can be said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles
from labelproof.fitting.defaults import (
    ROWS,
    Sparse,
    choose_batch_size,
    choose_epochs,
    choose_network,
    choose_weight_decay,
    complete_loss,
)
from labelproof.models.pretrained import LIBRARIES
from labelproof.training.configuration import Configuration

__all__ = [
    "LARGE",
    "ROBUST",
    "Inputs",
    "choose_recipe",
    "default_loss",
    "look_at",
    "network_for",
    "small_network",
    "sparse_for",
]

ROBUST = "ce+sr"
"""The loss where none is named: sparse regularization, set for the data and the training."""

LARGE = "resnet18-imagenet"
"""The network for photos, where there is a GPU."""

_SHORT = 40
"""Epochs below which hard images are not learned before the penalty grows. On CIFAR-10 with 40%
wrong labels and 12 epochs, plain and generalised cross entropy agreed with 45% of the held-out
labels, the best regularised form with 40% (`benchmarks/results/tuning-cifar10.json`)."""

_EASY = Sparse(first=5, growth=45)
"""For small grey images: the demo's setting, and the one chosen for MNIST at symmetric noise .4."""
_HARD = Sparse(first=1.2, growth=35, normalize=True)
"""The paper's for CIFAR-10."""
_MANY = Sparse(first=4, growth=52, p=0.01, normalize=True)
"""The paper's for CIFAR-100, weaker since more classes are harder."""

_PASSES = {False: 250_000, True: 3_000_000}
"""Images seen in a whole training without and with a GPU, for sets that are not tiny or huge."""

_EPOCHS = (20, 120)
"""Fewest and most epochs for images."""

_SMALL = 40
"""Pixels up to which an image is looked at whole."""


@dataclass(frozen=True)
class Inputs:
    """What can be seen of a dataset before it is trained on.

    Attributes:
        kind: `"images"` or `"rows"`.
        shape: Of one input: channels, height and width, or the number of features.
        examples: Training examples.
        classes: Number of classes.
        lazy: Whether images are files that may differ in size, or are large. Small ones of one
            size are looked at as an array of them would be.
    """

    kind: str
    shape: tuple[int, ...]
    examples: int
    classes: int
    lazy: bool = False


def look_at(dataset: Dataset) -> Inputs:
    """What a recipe is chosen by.

    >>> from labelproof.data import load_digits
    >>> look_at(load_digits())
    Inputs(kind='images', shape=(1, 8, 8), examples=1347, classes=10, lazy=False)
    """
    return Inputs(
        "rows" if dataset.tabular else "images",
        dataset.input_shape,
        len(dataset.train),
        dataset.num_classes,
        not (isinstance(dataset.train.images, np.ndarray) or _small_and_alike(dataset)),
    )


def choose_recipe(
    dataset: Dataset, *, data: str | None = None, fast: bool = False, **given: Any
) -> Configuration:
    """How to train on a dataset; what is given is taken as it is.

    Args:
        dataset: One's own, or any other.
        data: What the run calls it, a name or a path; the dataset's name unless given.
        fast: Whether there is a GPU. Without one, networks and images are kept small.
        given: Settings of `Configuration` that are decided already.

    Example:
        >>> from labelproof.data import load_digits
        >>> recipe = choose_recipe(load_digits())
        >>> recipe.network, recipe.epochs, recipe.batch_size
        ('cnn4(width=12)', 120, 16)
        >>> recipe.loss
        'ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.03223,r=1,normalize=false)'
        >>> choose_recipe(load_digits(), loss="gce", epochs=5).epochs
        5
    """
    inputs = look_at(dataset)
    settings: dict[str, Any] = {"validation": 0.1, **_descent(inputs)}
    settings |= _length(inputs, fast=fast) | network_for(inputs, fast=fast)
    settings |= _from_pretrained(given.get("network"), inputs)
    settings |= {name: value for name, value in given.items() if value is not None}
    settings["data"] = data or dataset.name
    epochs = settings["epochs"]
    loss = settings.get("loss") or default_loss(inputs, epochs=epochs)
    settings["loss"] = complete_loss(loss, epochs=epochs, sparse=sparse_for(inputs))
    return Configuration.from_values(settings)


def default_loss(inputs: Inputs, *, epochs: int) -> str:
    """The loss where none is named.

    Sparse regularization, but for hard images that are trained on too shortly for it: those get
    generalised cross entropy, which is robust from the first step.

    >>> default_loss(Inputs("rows", (30,), 500, 2), epochs=20)
    'ce+sr'
    >>> default_loss(Inputs("images", (3, 32, 32), 50_000, 10), epochs=12)
    'gce(q=0.7)'
    """
    short = epochs < _SHORT
    return "gce(q=0.7)" if sparse_for(inputs) in (_HARD, _MANY) and short else ROBUST


def sparse_for(inputs: Inputs) -> Sparse:
    """What `sr` without arguments stands for on such data: the harder they are, the weaker.

    >>> sparse_for(Inputs("images", (3, 32, 32), 50_000, 100)).p
    0.01
    """
    if inputs.kind == "rows":
        return ROWS
    if inputs.classes > 20:
        return _MANY
    channels, height, width = inputs.shape
    return _EASY if channels == 1 and max(height, width) <= _SMALL else _HARD


def network_for(inputs: Inputs, *, fast: bool = False) -> dict[str, str]:
    """A network for inputs of this kind and size, and what is done to training images.

    Large images are looked at through crops of one size. Mirroring is for colour images alone: a
    mirrored digit or letter is another one.

    >>> network_for(Inputs("images", (3, 32, 32), 50_000, 10))
    {'network': 'cnn8', 'augmentation': 'crop:4,flip'}
    """
    if inputs.kind == "rows":
        return {"network": choose_network(inputs.shape)}
    channels, height, width = inputs.shape
    flip = ",flip" if channels == 3 else ""
    if inputs.lazy or max(height, width) > _SMALL:
        if fast:
            return {"network": LARGE, "augmentation": f"resized-crop:224{flip}"}
        return {"network": "cnn8(width=32)", "augmentation": f"resized-crop:48{flip}"}
    network = {"network": small_network(height, width)}
    if max(height, width) <= 16 or min(height, width) < 4:
        return network
    return network | {"augmentation": f"crop:{max(height, width) // 8}{flip}"}


def small_network(height: int, width: int) -> str:
    """A network for small images that are looked at whole.

    >>> small_network(8, 8), small_network(28, 28), small_network(32, 32)
    ('cnn4(width=12)', 'cnn4', 'cnn8')
    """
    if min(height, width) < 4:
        return "mlp"
    if max(height, width) <= 16:
        return "cnn4(width=12)"
    return "cnn4" if max(height, width) <= 28 or min(height, width) < 8 else "cnn8"


def _small_and_alike(dataset: Dataset) -> bool:
    """Whether all images of all splits are small and have one size, as a network takes them."""
    shape = dataset.input_shape
    if max(shape[1:]) > _SMALL:
        return False
    return all(
        images.one_size and images[0].shape == shape
        if isinstance(images, ImageFiles)
        else isinstance(images, np.ndarray) and images.shape[1:] == shape
        for images in (split.images for split in dataset.splits.values())
    )


def _from_pretrained(network: str | None, inputs: Inputs) -> dict[str, Any]:
    """What changes where a network knows how to see already: large crops, fewer epochs."""
    if network is None or not network.startswith(tuple(f"{name}/" for name in LIBRARIES)):
        return {}
    flip = ",flip" if inputs.shape[0] == 3 else ""
    return {
        "augmentation": f"resized-crop:224{flip}",
        "epochs": min(_length(inputs, fast=True)["epochs"], 20),
        "learning_rate": 0.003,
        "weight_decay": 1e-4,
    }


def _length(inputs: Inputs, *, fast: bool) -> dict[str, int]:
    """Epochs so that small sets are seen often enough and large ones end; batches that fit."""
    if inputs.kind == "rows":
        batch = choose_batch_size(inputs.examples)
        return {
            "batch_size": batch,
            "epochs": choose_epochs(inputs.examples, batch, images=False),
        }
    fewest, most = _EPOCHS
    epochs = round(_PASSES[fast] / max(inputs.examples, 1))
    # About fifty steps an epoch at least, since it is steps that a network learns in.
    batch = 2 ** max((inputs.examples // 50).bit_length() - 1, 0)
    return {
        "epochs": min(max(epochs, fewest), most),
        "batch_size": min(max(batch, 16), 128),
    }


def _descent(inputs: Inputs) -> dict[str, Any]:
    if inputs.kind == "rows":
        return {
            "learning_rate": 0.02,
            "weight_decay": choose_weight_decay(inputs.shape, inputs.examples),
        }
    return {"learning_rate": 0.01, "weight_decay": 1e-3}
