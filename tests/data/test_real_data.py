"""The datasets themselves, as published; skipped where they are not at hand."""

import numpy as np
import pytest
from shared_data import shared_data

from labelproof.data import load_coarse_labels, load_dataset, verify_dataset

NAMES = ("mnist", "cifar10", "cifar100")
ENDS = {
    "mnist": {"train": (5, 8), "test": (7, 6)},
    "cifar10": {"train": (6, 1), "test": (3, 7)},
    "cifar100": {"train": (19, 73), "test": (49, 70)},
}


@pytest.mark.parametrize("name", NAMES)
def test_contents_and_normalisation_are_the_published_ones(name: str) -> None:
    root = shared_data(name)
    assert verify_dataset(name, root=root).problems == ()
    dataset = load_dataset(name, root=root)
    for split, ends in ENDS[name].items():
        assert tuple(dataset.splits[split].labels[[0, -1]]) == ends
    # A histogram holds all that a mean and a standard deviation need, and no gigabytes of floats.
    for channel in range(dataset.image_shape[0]):
        counts = np.bincount(dataset.train.array[:, channel].ravel(), minlength=256)
        values = np.arange(256) / 255
        mean = (counts * values).sum() / counts.sum()
        std = np.sqrt((counts * (values - mean) ** 2).sum() / counts.sum())
        np.testing.assert_allclose(dataset.mean[channel], mean, atol=5.1e-5)
        np.testing.assert_allclose(dataset.std[channel], std, atol=5.1e-5)
    if name == "cifar100":
        coarse = load_coarse_labels(root=root)["train"]
        pairs = np.unique(np.stack([coarse, dataset.train.labels]), axis=1)
        assert np.bincount(pairs[0]).tolist() == [5] * 20
