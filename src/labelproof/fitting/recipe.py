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
from labelproof.losses import SparseRegularized, parse_loss
from labelproof.models.pretrained import LIBRARIES
from labelproof.training.configuration import Configuration

__all__ = ["ROBUST", "Inputs", "choose_recipe", "look_at", "network_for", "robust_loss"]

ROBUST = "ce+sr"
"""The loss where none is named: sparse regularization, scaled to the length of the training."""

_GROWTH = 45.0
"""By how much the penalty's weight grows over a training: the paper's 1.03 an epoch is 35 over its
120, the demo's 1.1 is 45 over its 40. What matters is where it ends, not how many epochs it had."""

_PASSES = {"rows": 400_000, "images": 250_000}
"""Examples seen in a whole training, for sets that are not tiny or huge."""

_EPOCHS = {"rows": (20, 200), "images": (20, 120)}
"""Fewest and most epochs."""

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
        lazy: Whether images are decoded when they are asked for, and so may differ in size.
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
        not isinstance(dataset.train.images, np.ndarray),
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
    settings: dict[str, Any] = {"validation": 0.1, **_length(inputs), **_descent(inputs)}
    settings |= network_for(inputs, fast=fast)
    settings |= _from_pretrained(given.get("network"), inputs)
    settings |= {name: value for name, value in given.items() if value is not None}
    settings["data"] = data or dataset.name
    settings["loss"] = robust_loss(settings.get("loss", ROBUST), epochs=settings["epochs"])
    return Configuration.from_values(settings)


def robust_loss(text: str, *, epochs: int) -> str:
    """A loss as text, with `sr` that has no arguments set for a training of so many epochs.

    A network that is sharpened too much too early learns nothing, and one that is never sharpened
    learns the wrong labels too. The paper's answer is a weight that starts below 1/p and grows; by
    how much it grows in all is kept, whatever the number of epochs.

    >>> robust_loss("gce(q=0.7)", epochs=10)
    'gce(q=0.7)'
    >>> robust_loss("ce+sr", epochs=10)
    'ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.46326,normalize=false)'
    >>> robust_loss("ce+sr(tau=0.1,lambda0=2)", epochs=10)
    'ce+sr(tau=0.1,lambda0=2)'
    """
    stem, found, rest = text.strip().partition("+sr")
    if not found or rest.strip():
        return text
    if isinstance(parse_loss(text), SparseRegularized):
        growth = round(_GROWTH ** (1 / max(epochs, 1)), 5)
        return f"{stem}+sr(tau=0.5,p=0.1,lambda0=5,rho={growth:g},normalize=false)"
    return text


def network_for(inputs: Inputs, *, fast: bool = False) -> dict[str, str]:
    """A network for inputs of this kind and size, and what is done to training images.

    Large images are looked at through crops of one size. Mirroring is for colour images alone: a
    mirrored digit or letter is another one.

    >>> network_for(Inputs("images", (3, 32, 32), 50_000, 10))
    {'network': 'cnn8', 'augmentation': 'crop:4,flip'}
    """
    if inputs.kind == "rows":
        return {"network": "mlp(hidden=128)"}
    channels, height, width = inputs.shape
    flip = ",flip" if channels == 3 else ""
    if inputs.lazy or max(height, width) > _SMALL:
        if fast:
            return {"network": "resnet18-imagenet", "augmentation": f"resized-crop:224{flip}"}
        return {"network": "cnn8(width=32)", "augmentation": f"resized-crop:48{flip}"}
    if min(height, width) < 4:
        return {"network": "mlp"}
    if max(height, width) <= 16:
        return {"network": "cnn4(width=12)"}
    shift = f"crop:{max(height, width) // 8}{flip}"
    if max(height, width) <= 28 or min(height, width) < 8:
        return {"network": "cnn4", "augmentation": shift}
    return {"network": "cnn8", "augmentation": shift}


def _from_pretrained(network: str | None, inputs: Inputs) -> dict[str, Any]:
    """What changes where a network knows how to see already: large crops, fewer epochs."""
    if network is None or not network.startswith(tuple(f"{name}/" for name in LIBRARIES)):
        return {}
    flip = ",flip" if inputs.shape[0] == 3 else ""
    return {
        "augmentation": f"resized-crop:224{flip}",
        "epochs": min(_length(inputs)["epochs"], 20),
        "learning_rate": 0.003,
        "weight_decay": 1e-4,
    }


def _length(inputs: Inputs) -> dict[str, int]:
    """Epochs so that small sets are seen often enough and large ones end; batches that fit."""
    fewest, most = _EPOCHS[inputs.kind]
    epochs = round(_PASSES[inputs.kind] / max(inputs.examples, 1))
    # About fifty steps an epoch at least, since it is steps that a network learns in.
    batch = 2 ** max((inputs.examples // 50).bit_length() - 1, 0)
    return {
        "epochs": min(max(epochs, fewest), most),
        "batch_size": min(max(batch, 16), 128),
    }


def _descent(inputs: Inputs) -> dict[str, Any]:
    if inputs.kind == "rows":
        return {"optimizer": "adamw", "learning_rate": 1e-3, "weight_decay": 1e-2}
    return {"learning_rate": 0.01, "weight_decay": 1e-3}
