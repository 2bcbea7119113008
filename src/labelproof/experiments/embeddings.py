"""Embeddings: features of test images in two dimensions, and files of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.published import known_dataset
from labelproof.experiments.presets import paper_method
from labelproof.experiments.records import find_record_files, read_record_file
from labelproof.models import penultimate
from labelproof.npz import read_npz
from labelproof.training.batches import CHUNK
from labelproof.training.configuration import Configuration
from labelproof.training.files import write_arrays
from labelproof.training.metrics import evaluating
from labelproof.training.record import RECORD
from labelproof.training.trained_network import TrainedNetwork

MOST_CLASSES = 10
"""Classes that can be told apart by their colours; of more, the first are shown."""


@dataclass(frozen=True)
class Embedding:
    """Test images in the plane, as a run's network sees them.

    Attributes:
        method: The run's, as the paper's tables call it.
        noise: The run's.
        accuracy: Of the last epoch on all test images, percent.
        points: `(N, 2)`.
        labels: The images' true classes, `(N)`.
    """

    method: str
    noise: str
    accuracy: float
    points: NDArray[np.floating]
    labels: NDArray[np.int64]


def find_runs(folders: Sequence[Path]) -> dict[Path, Configuration]:
    """The finished runs that are kept in these folders or below them, in order.

    Raises:
        FileNotFoundError: There is none.
    """
    found = {
        file.parent: Configuration.recorded(read_record_file(file).configuration)
        for folder in folders
        for file in find_record_files(folder)
        if file.name == RECORD
    }
    if not found:
        listed = ", ".join(str(folder) for folder in folders)
        raise FileNotFoundError(
            f"runs: no finished run is kept in {listed}; 'labelproof bench ... --keep-runs' and "
            "'labelproof train' leave such folders"
        )
    return found


def sample_test_images(dataset: Dataset, images: int) -> NDArray[np.int64]:
    """So many test images of the first `MOST_CLASSES` classes, the same for every run: indices.

    Example:
        >>> from labelproof.data import load_digits
        >>> sample_test_images(load_digits(), 4)
        array([121, 229, 285, 380])
    """
    shown = np.flatnonzero(dataset.test.labels < MOST_CLASSES)
    generator = np.random.default_rng(0)
    return np.sort(generator.choice(shown, min(images, len(shown)), replace=False))


def see_features(
    run: TrainedNetwork, dataset: Dataset, chosen: NDArray[np.int64]
) -> NDArray[np.float32]:
    """What goes into the last layer of a run's network for some test images, `(N, D)`."""
    features, source = [], cast(Any, dataset.test.images)
    with evaluating(run.network):
        for indices in torch.from_numpy(chosen).split(CHUNK):
            images = [run.fit_image(source[index]) for index in indices.tolist()]
            pixels = torch.from_numpy(np.stack(images)).permute(0, 2, 3, 1)
            features.append(penultimate(run.network, run.prepare(pixels)).float().cpu())
    return torch.cat(features).numpy()


def embed(run: TrainedNetwork, dataset: Dataset, chosen: NDArray[np.int64]) -> Embedding:
    """Embed a finished run's features of four or more test images in the plane by t-SNE."""
    assert run.record is not None  # noqa: S101
    return Embedding(
        paper_method(run.configuration),
        run.configuration.noise,
        run.record.final_accuracy,
        to_plane(see_features(run, dataset, chosen)),
        dataset.test.labels[chosen],
    )


def to_plane(features: NDArray[np.float32]) -> NDArray[np.floating]:
    """Features `(N, D)` in the plane, `(N, 2)`, by t-SNE; the same whenever it is done."""
    # Imported here: scikit-learn takes a second, and most commands do not need it.
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(features) - 1) / 3)
    return TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(features)


_NAMES = ("methods", "noises", "accuracies", "points", "labels")


def write_embeddings(path: Path, embeddings: Sequence[Embedding]) -> None:
    """Keep embeddings of the same test images in an `.npz` file, a few kilobytes each."""
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
    return known_dataset(dataset).class_names[:MOST_CLASSES]


def select_embeddings(embeddings: Sequence[Embedding], noise: str | None = None) -> list[Embedding]:
    """Those of one kind of noise, or all, as in the paper: plain losses first, rates rising.

    No noise at all is the first rate of `symmetric`.
    """
    kinds = ("none", "symmetric") if noise == "symmetric" else (noise,)
    found = [each for each in embeddings if not noise or each.noise.partition(":")[0] in kinds]
    return sorted(
        found,
        key=lambda each: ("+SR" in each.method, each.method, each.noise != "none", each.noise),
    )


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
        arrays = read_npz(Path(path), _NAMES)
        methods, noises, accuracies, points, labels = (arrays[name] for name in _NAMES)
    except ValueError as error:
        raise ValueError(f"{path}: not a file of embeddings ({error})") from None
    return [
        Embedding(str(method), str(noise), float(accuracy), each, labels.astype(np.int64))
        for method, noise, accuracy, each in zip(methods, noises, accuracies, points, strict=True)
    ]
