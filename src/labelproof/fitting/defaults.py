"""What settings that are left open stand for: they follow from the data and the other choices.

The numbers for rows were chosen by `benchmarks/estimator_settings.py`, by accuracy on held-out
NOISY labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from labelproof.ranges import choose, whole
from labelproof.text import format_value
from labelproof.training.configuration import OPTIMIZERS, Configuration

__all__ = [
    "FIRST_WEIGHT",
    "ROWS",
    "Sparse",
    "choose_batch_size",
    "choose_epochs",
    "choose_network",
    "choose_setting",
    "choose_weight_decay",
    "complete_loss",
    "is_bare",
]

FIRST_WEIGHT = 1.2
"""The first weight of the penalty, as for the paper's CIFAR-10, well below the bound of 1 / p."""


class Sparse(NamedTuple):
    """What an `sr` without arguments stands for.

    By how much the weight grows over all epochs is what counts, and not how many epochs there are:
    in the paper it is 35 times on CIFAR-10, 52 on CIFAR-100 and 1024 on MNIST.
    """

    first: float = FIRST_WEIGHT
    """The first weight, below 1 / p."""
    growth: float = 40.0
    """How much the weight grows over all epochs."""
    p: float = 0.1
    """The exponent of the norm."""
    normalize: bool = False
    """Whether logits are brought to a length of 1 first."""


ROWS = Sparse()
"""For the rows of a table."""
STEPS = 400
"""Steps that a small table is given."""
DECAY = 0.6
"""Weight decay for each feature, divided by the number of examples."""
_LEARNING_RATES = {"sgd": 0.02, "adamw": 0.001}

_BARE = re.compile(r"\bsr\b(?:\s*\(\s*\))?(?!\s*\()", re.ASCII | re.IGNORECASE)


def complete_loss(text: str, *, epochs: int, sparse: Sparse = ROWS) -> str:
    r"""Give an `sr` without arguments those that fit the number of epochs; others stay as they are.

    $\lambda_0$ lies below $1 / p$, past which the penalty outweighs learning from the first step,
    and the weight grows by the same factor over the run however many epochs it has.

    Args:
        text: A loss.
        epochs: Of the run.
        sparse: What it stands for.

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


def is_bare(text: str) -> bool:
    """Whether a loss has an `sr` without arguments.

    >>> is_bare("ce + SR"), is_bare("ce+sr(tau=1)"), is_bare("ce")
    (True, False, False)
    """
    return _BARE.search(text) is not None


def choose_weight_decay(input_shape: Sequence[int], num_examples: int) -> float:
    """For rows the share of features to examples: what has many features fits noise by chance.

    >>> round(choose_weight_decay((30,), 300), 4), choose_weight_decay((50,), 100_000)
    (0.06, 0.0003)
    """
    if len(input_shape) > 1:
        return 1e-3
    return min(DECAY * input_shape[0] / num_examples, 0.1)


def choose_batch_size(num_examples: int) -> int:
    """Small batches for small tables, so that an epoch has some steps; at most 256.

    >>> [choose_batch_size(number) for number in (20, 150, 5_000, 100_000)]
    [32, 32, 64, 256]
    """
    wanted = 2 ** math.floor(math.log2(max(num_examples / 64, 1)))
    return int(min(max(wanted, 32), 256))


def choose_epochs(num_examples: int, batch_size: int, *, images: bool) -> int:
    """Enough for some hundred steps, but not less than 20 (50 for images).

    >>> choose_epochs(150, 32, images=False), choose_epochs(100_000, 256, images=False)
    (80, 20)
    """
    if images:
        return 50
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
    input_shape: Sequence[int],
    num_examples: int,
    *,
    network: Any,
    epochs: Any,
    batch_size: Any,
    optimizer: Any,
    learning_rate: Any,
    weight_decay: Any,
    seed: int,
) -> Configuration:
    """The configuration of a run, but for its loss, with every `auto` resolved.

    Args:
        input_shape: `(F,)` of rows, or `(C, H, W)` of images.
        num_examples: How many are learned from.
        network: A text, or `auto`, like those below.
        epochs: Passes over the examples.
        batch_size: Examples in a step.
        optimizer: `sgd` or `adamw`.
        learning_rate: Of the first epoch.
        weight_decay: Of all parameters.
        seed: Of the weights and the order of the examples.

    Example:
        >>> given = dict.fromkeys(("network", "epochs", "learning_rate", "weight_decay"), "auto")
        >>> setting = choose_setting((4,), 150, batch_size=50, optimizer="sgd", seed=1, **given)
        >>> setting.network, setting.epochs, setting.weight_decay
        ('mlp(depth=1,hidden=100)', 134, 0.016)
    """
    images = len(input_shape) > 1
    choose("optimizer", optimizer, OPTIMIZERS)
    if _is_auto(batch_size):
        batch_size = choose_batch_size(num_examples)
    batch_size = whole("batch_size", batch_size, 2)
    if _is_auto(epochs):
        epochs = choose_epochs(num_examples, batch_size, images=images)
    if _is_auto(weight_decay):
        weight_decay = choose_weight_decay(input_shape, num_examples)
    return Configuration(
        "X",
        network=choose_network(input_shape) if _is_auto(network) else network,
        epochs=epochs,
        batch_size=batch_size,
        optimizer=optimizer,
        learning_rate=_LEARNING_RATES[optimizer] if _is_auto(learning_rate) else learning_rate,
        weight_decay=weight_decay,
        seed=seed,
        precision="auto" if images else "float32",
    )


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"
