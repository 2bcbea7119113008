"""A network and a way to train it that fit a dataset's kind and size.

A recipe needs no true label: it depends on the kind, number and size of the inputs and on the
number of classes. Each choice is a plain setting of the run and can be overridden. The numbers for
rows were chosen by `benchmarks/estimator_settings.py`, by accuracy on held-out noisy labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from labelproof.data.dataset import Dataset
from labelproof.data.images import SMALL, ImageFiles
from labelproof.losses.text import format_value
from labelproof.models.pretrained import is_pretrained
from labelproof.noise import parse_noise
from labelproof.ranges import choose, whole
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import OPTIMIZERS, Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.provenance import describe
from labelproof.tuning.trial import penalty


class Sparse(NamedTuple):
    """The values that an `sr` without arguments stands for.

    The growth of the weight over all epochs matters, not their number: in the paper it is a factor
    of 35 on CIFAR-10, 52 on CIFAR-100 and 1024 on MNIST.
    """

    first: float = 1.2
    """The first weight, as in the paper for CIFAR-10, well below the bound of 1 / p."""
    growth: float = 40.0
    """The factor by which the weight grows over all epochs."""
    p: float = 0.1
    """The exponent of the norm."""
    normalize: bool = False
    """Whether logits are scaled to a length of 1 first."""


ROWS = Sparse()
"""For the rows of a table."""
STEPS = 400
"""Number of training steps on a small table."""
DECAY = 0.6
"""Weight decay of rows, as a multiple of features per example."""
_LEARNING_RATES = {"sgd": 0.02, "adamw": 0.001}

_BARE = re.compile(r"\bsr\b(?:\s*\(\s*\))?(?!\s*\()", re.ASCII | re.IGNORECASE)


def complete_loss(text: str, *, epochs: int, sparse: Sparse = ROWS) -> str:
    r"""Give an `sr` without arguments those for the number of epochs; others stay as they are.

    $\lambda_0$ lies below $1 / p$, above which the penalty outweighs learning from the first step,
    and the weight grows by the same factor over the run, whatever its number of epochs.

    Args:
        text: A loss.
        epochs: Number of epochs of the run.
        sparse: The values to use.

    Example:
        >>> complete_loss("gce(q=0.7)+sr", epochs=10)
        'gce(q=0.7)+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.446...,r=1,normalize=false)'
        >>> complete_loss("ce+sr(p=0.5)", epochs=10)
        'ce+sr(p=0.5)'
    """
    values = {
        "tau": 0.5,
        "p": sparse.p,
        "lambda0": sparse.first,
        "rho": round(sparse.growth ** (1 / max(epochs, 1)), 5),
        "r": 1,
        "normalize": sparse.normalize,
    }
    written = ",".join(f"{name}={format_value(value)}" for name, value in values.items())
    return _BARE.sub(f"sr({written})", text)


def choose_weight_decay(input_shape: Sequence[int], num_examples: int) -> float:
    """The weight decay; for rows it grows with features per example, which can fit noise.

    >>> round(choose_weight_decay((30,), 300), 4), choose_weight_decay((50,), 100_000)
    (0.06, 0.0003)
    """
    if len(input_shape) > 1:
        return 1e-3
    return min(DECAY * input_shape[0] / num_examples, 0.1)


def choose_batch_size(num_examples: int) -> int:
    """Small batches for small tables, so that an epoch has several steps; at most 256.

    >>> [choose_batch_size(number) for number in (20, 150, 5_000, 100_000)]
    [32, 32, 64, 256]
    """
    size = 2 ** math.floor(math.log2(max(num_examples / 64, 1)))
    return int(min(max(size, 32), 256))


def choose_epochs(num_examples: int, batch_size: int) -> int:
    """Enough epochs for some hundred steps on rows, at least 20.

    >>> choose_epochs(150, 32), choose_epochs(100_000, 256)
    (80, 20)
    """
    return max(20, math.ceil(STEPS / math.ceil(num_examples / batch_size)))


def choose_network(input_shape: Sequence[int]) -> str:
    """The network for inputs of a shape: `(F,)` of rows, or `(C, H, W)` of images.

    >>> [choose_network(shape) for shape in ((30,), (1, 28, 28), (3, 32, 32), (3, 64, 64))]
    ['mlp(depth=1,hidden=100)', 'cnn4', 'cnn8', 'resnet18']
    """
    if len(input_shape) == 1 or min(input_shape[1:]) < 4:
        return "mlp(depth=1,hidden=100)"
    side = min(input_shape[1:])
    if side <= 28:
        return "cnn4"
    if side < 48:
        return "cnn8"
    return "resnet18" if side < 128 else "resnet18-imagenet"


def choose_setting(
    input_shape: Sequence[int], num_examples: int, *, optimizer: str = "sgd", **given: Any
) -> Configuration:
    """The configuration of an estimator's run, except for its loss.

    Args:
        input_shape: `(F,)` of rows, or `(C, H, W)` of images.
        num_examples: Number of training examples.
        optimizer: `sgd` or `adamw`.
        given: Other settings of `Configuration`; those that are `"auto"` are chosen.

    Example:
        >>> setting = choose_setting((4,), 150, batch_size=50, epochs="auto")
        >>> setting.network, setting.epochs, setting.weight_decay
        ('mlp(depth=1,hidden=100)', 134, 0.016)
    """
    images = len(input_shape) > 1
    choose("optimizer", optimizer, OPTIMIZERS)
    settings = {name: value for name, value in given.items() if value != "auto"}
    batch_size = whole("batch_size", settings.get("batch_size", choose_batch_size(num_examples)), 2)
    chosen: dict[str, Any] = {
        "network": choose_network(input_shape),
        "epochs": 50 if images else choose_epochs(num_examples, batch_size),
        "learning_rate": _LEARNING_RATES[optimizer],
        "weight_decay": choose_weight_decay(input_shape, num_examples),
        "precision": "auto" if images else "float32",
    }
    chosen |= {**settings, "optimizer": optimizer, "batch_size": batch_size}
    return Configuration("X", **chosen)


ROBUST = "ce+sr"
"""The default loss: sparse regularization, adapted to the data and the training."""

LARGE = "resnet18-imagenet"
"""The network for photos on a GPU."""

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

_L1 = 5e-5
"""The l1 penalty of small colour images on a GPU, where `3*ce+sr` with it predicts more held-out
noisy labels than CE+SR with weight decay. Under four kinds of noise on CIFAR-10 it was the best of
fifteen settings (`benchmarks/results/sparse-weights-first.jsonl` and `-second.jsonl`, 60 epochs);
on 5,000 of its images, 57.9 % (57.3 %; `-small.jsonl`, 120 epochs)."""
_TOGETHER = {"loss", "l1", "weight_decay", "optimizer", "learning_rate"}
"""Settings that were chosen together with that penalty; with one of them given, it is left out."""

_PASSES = {False: 250_000, True: 3_000_000}
"""Images seen in a whole training, without and with a GPU, unless the dataset is tiny or huge."""


@dataclass(frozen=True)
class Inputs:
    """What a recipe depends on.

    Attributes:
        kind: `"images"` or `"rows"`.
        shape: Shape of one input: channels, height and width, or the number of features.
        examples: Number of training examples.
        classes: Number of classes.
        lazy: Whether images are files that are large or differ in size. Small files of one size
            are treated like an array.
    """

    kind: str
    shape: tuple[int, ...]
    examples: int
    classes: int
    lazy: bool = False


def look_at(dataset: Dataset) -> Inputs:
    """What the recipe for a dataset depends on.

    >>> from labelproof.data import load_digits
    >>> look_at(load_digits())
    Inputs(kind='images', shape=(1, 8, 8), examples=1347, classes=10, lazy=False)
    """
    images, shape = dataset.train.images, dataset.input_shape
    lazy = not isinstance(images, np.ndarray)
    if lazy and isinstance(images, ImageFiles) and max(shape[1:]) <= SMALL:
        lazy = not _one_size(dataset)
    kind = "rows" if dataset.tabular else "images"
    return Inputs(kind, shape, len(dataset.train), dataset.num_classes, lazy)


def choose_recipe(
    dataset: Dataset, *, data: str | None = None, fast: bool = False, **given: Any
) -> Configuration:
    """How to train on a dataset; given settings are kept.

    Args:
        dataset: The dataset.
        data: Its name or path in the configuration; by default the dataset's name.
        fast: Whether there is a GPU. Without one, networks and images are kept small.
        given: Settings of `Configuration`; those that are `None` are chosen.

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
    settings: dict[str, Any] = {
        "validation": 0.1,
        "learning_rate": 0.02 if inputs.kind == "rows" else 0.01,
        "weight_decay": choose_weight_decay(inputs.shape, inputs.examples),
    }
    settings |= _length(inputs, fast=fast) | network_for(inputs, fast=fast)
    settings |= _from_pretrained(given.get("network"), inputs)
    settings |= penalty(given.get("l1") or 0.0)
    asked = {name: value for name, value in given.items() if value is not None}
    settings |= asked
    settings["data"] = data or dataset.name
    epochs, sparse = settings["epochs"], sparse_for(inputs)
    loss = settings.get("loss") or default_loss(inputs, epochs=epochs)
    if (
        (loss, sparse, settings["network"]) == (ROBUST, _HARD, "cnn8")
        and fast
        and not _TOGETHER & asked.keys()
    ):
        loss, sparse = "3*ce+sr", _HARD._replace(first=1.8)
        settings |= penalty(_L1)
    settings["loss"] = complete_loss(loss, epochs=epochs, sparse=sparse)
    return Configuration.from_values(settings)


def default_loss(inputs: Inputs, *, epochs: int) -> str:
    """The default loss.

    Sparse regularization, except for images with too few epochs: they get generalised cross
    entropy, which is robust from the first step.

    >>> default_loss(Inputs("rows", (30,), 500, 2), epochs=20)
    'ce+sr'
    >>> default_loss(Inputs("images", (3, 32, 32), 50_000, 10), epochs=12)
    'gce(q=0.7)'
    """
    return "gce(q=0.7)" if inputs.kind == "images" and epochs < _SHORT else ROBUST


def sparse_for(inputs: Inputs) -> Sparse:
    """What an `sr` without arguments stands for: the harder the data, the weaker.

    >>> sparse_for(Inputs("images", (3, 32, 32), 50_000, 100)).p
    0.01
    """
    if inputs.kind == "rows":
        return ROWS
    if inputs.classes > 20:
        return _MANY
    channels, height, width = inputs.shape
    return _EASY if channels == 1 and max(height, width) <= SMALL else _HARD


def network_for(inputs: Inputs, *, fast: bool = False) -> dict[str, str]:
    """A network for inputs of this kind and size, and the augmentation of training images.

    Large images are cropped to one size. Only colour images are flipped: a mirrored digit or letter
    is another one.

    >>> network_for(Inputs("images", (3, 32, 32), 50_000, 10))
    {'network': 'cnn8', 'augmentation': 'crop:4,flip'}
    """
    if inputs.kind == "rows":
        return {"network": choose_network(inputs.shape)}
    channels, height, width = inputs.shape
    flip = ",flip" if channels == 3 else ""
    if inputs.lazy or max(height, width) > SMALL:
        if fast:
            return {"network": LARGE, "augmentation": f"resized-crop:224{flip}"}
        return {"network": "cnn8(width=32)", "augmentation": f"resized-crop:48{flip}"}
    network = {"network": small_network(height, width)}
    if max(height, width) <= 16 or min(height, width) < 4:
        return network
    return network | {"augmentation": f"crop:{max(height, width) // 8}{flip}"}


def small_network(height: int, width: int) -> str:
    """A network for small images, which are used whole.

    >>> small_network(8, 8), small_network(28, 28), small_network(32, 32)
    ('cnn4(width=12)', 'cnn4', 'cnn8')
    """
    if min(height, width) < 4:
        return "mlp"
    if max(height, width) <= 16:
        return "cnn4(width=12)"
    return "cnn4" if max(height, width) <= 28 or min(height, width) < 8 else "cnn8"


def _one_size(dataset: Dataset) -> bool:
    """Whether the image files of all splits have the same size."""
    files = [split.images for split in dataset.splits.values()]
    shape = dataset.input_shape
    return all(
        images.one_size and images[0].shape == shape
        for images in files
        if isinstance(images, ImageFiles)
    )


def _from_pretrained(network: str | None, inputs: Inputs) -> dict[str, Any]:
    """Settings that change for a pretrained network: large crops, fewer epochs."""
    if not is_pretrained(network):
        return {}
    flip = ",flip" if inputs.shape[0] == 3 else ""
    return {
        "augmentation": f"resized-crop:224{flip}",
        "epochs": min(_length(inputs, fast=True)["epochs"], 20),
        "learning_rate": 0.003,
        "weight_decay": 1e-4,
    }


def _length(inputs: Inputs, *, fast: bool) -> dict[str, int]:
    """Batch size and epochs: many epochs for small datasets, few for large ones."""
    if inputs.kind == "rows":
        batch = choose_batch_size(inputs.examples)
        return {"batch_size": batch, "epochs": choose_epochs(inputs.examples, batch)}
    epochs = round(_PASSES[fast] / max(inputs.examples, 1))
    # At least about fifty steps per epoch, since a network learns in steps.
    batch = 2 ** max((inputs.examples // 50).bit_length() - 1, 0)
    return {"epochs": min(max(epochs, 20), 120), "batch_size": min(max(batch, 16), 128)}


def check_feasible(dataset: Dataset, configuration: Configuration) -> None:
    """Refuse what training would refuse only after its start.

    That is a network that does not take such inputs, an augmentation of rows, images of different
    sizes without a crop, noise that cannot be added to these labels, or nothing to validate on.

    Raises:
        ValueError: Training is impossible; the message says why.

    Example:
        >>> from labelproof.data import load_digits
        >>> check_feasible(load_digits(), Configuration("digits", network="cnn8"))
        >>> check_feasible(load_digits(), Configuration("digits", noise="human:worse"))
        Traceback (most recent call last):
            ...
        ValueError: human: expected the file of human:worse, got none; ...
    """
    augmentation = parse_augmentation(configuration.augmentation)
    check_network(dataset, configuration)
    if not augmentation.resized_crop and not _one_size(dataset):
        raise ValueError(
            f"augmentation: expected resized-crop:SIDE for images of different sizes, got "
            f"{augmentation}"
        )
    if parse_noise(configuration.noise).kind == "instance":
        # It needs pixels, which are not decoded yet, and can be added to any labels.
        configuration = replace(configuration, noise="none")
    choose_examples(configuration, dataset)


def check_network(dataset: Dataset, configuration: Configuration) -> None:
    """Refuse a network that cannot be made, or that does not take such inputs."""
    # Not pretrained: weights may be downloaded.
    describe(configuration, dataset).make_network(torch.Generator(), pretrained=False)
