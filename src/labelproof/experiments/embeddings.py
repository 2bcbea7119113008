"""Embeddings in a file: networks' views of test images, to be drawn where no weights are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelproof.data.classes import CIFAR10, CIFAR100, DIGITS
from labelproof.experiments.features import MOST_CLASSES, Embedding
from labelproof.training.files import write_arrays

__all__ = ["read_embeddings", "select_embeddings", "shown_classes", "write_embeddings"]

_NAMES = ("methods", "noises", "accuracies", "points", "labels")


def write_embeddings(path: Path, embeddings: Sequence[Embedding]) -> None:
    """Keep embeddings of the same test images, a few kilobytes each.

    Args:
        path: The `.npz` file to write.
        embeddings: At least one.
    """
    points = np.stack([each.points for each in embeddings]).astype(np.float32)
    # A picture has no more than three digits; what matters is where points lie in their own frame.
    points -= points.mean(axis=1, keepdims=True)
    points /= np.abs(points).max(axis=(1, 2), keepdims=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(
        path,
        {
            "methods": np.array([each.method for each in embeddings]),
            "noises": np.array([each.noise for each in embeddings]),
            "accuracies": np.array([each.accuracy for each in embeddings], dtype=np.float64),
            "points": points.astype(np.float16),
            "labels": np.asarray(embeddings[0].labels, dtype=np.int16),
        },
    )


def shown_classes(dataset: str) -> tuple[str, ...]:
    """Names of the classes that embeddings of a dataset show.

    >>> shown_classes("cifar10")[:2]
    ('airplane', 'automobile')
    """
    return {"cifar10": CIFAR10, "cifar100": CIFAR100[:MOST_CLASSES]}.get(dataset, DIGITS)


def select_embeddings(embeddings: Sequence[Embedding], noise: str | None = None) -> list[Embedding]:
    """Those of one kind of noise, in the order of the paper: plain losses first, rates rising.

    Args:
        embeddings: Of one dataset.
        noise: The kind, such as `symmetric`, which has no noise at all as its first rate; or all.
    """
    kinds = {None: lambda _: True, "symmetric": lambda kind: kind in ("none", "symmetric")}
    wanted = kinds.get(noise, lambda kind: kind == noise)
    found = [each for each in embeddings if wanted(each.noise.split(":")[0])]
    return sorted(found, key=lambda each: ("+SR" in each.method, each.method, _order(each.noise)))


def _order(noise: str) -> tuple[bool, str]:
    return noise != "none", noise


def read_embeddings(path: Path) -> list[Embedding]:
    """Read what `write_embeddings` wrote.

    Raises:
        ValueError: The file holds something else.

    Example:
        >>> file = getfixture("tmp_path") / "embeddings.npz"
        >>> points, labels = np.array([[0.0, 0.0], [4.0, 2.0]]), np.array([3, 1])
        >>> write_embeddings(file, [Embedding("CE", "none", 99.0, points, labels)])
        >>> (found,) = read_embeddings(file)
        >>> found.method, found.points.tolist(), found.labels
        ('CE', [[-1.0, -0.5], [1.0, 0.5]], array([3, 1]))
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            methods, noises, accuracies, points, labels = (arrays[name] for name in _NAMES)
    except (ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{path}: not a file of embeddings ({error})") from None
    return [
        Embedding(str(method), str(noise), float(accuracy), each, labels.astype(np.int64))
        for method, noise, accuracy, each in zip(methods, noises, accuracies, points, strict=True)
    ]
