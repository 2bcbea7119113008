"""The digits that ship with scikit-learn: 1,797 images of 8 x 8, nothing to download."""

from __future__ import annotations

import numpy as np

from labelproof.data.dataset import Dataset, Split

__all__ = ["load_digits"]

_GREYS = 16


def load_digits() -> Dataset:
    """Read the digits, three quarters to train on and a quarter to test on, always the same.

    >>> digits = load_digits()
    >>> len(digits.train), len(digits.test), digits.image_shape
    (1347, 450, (1, 8, 8))
    """
    # Imported here: scikit-learn takes a second, and most commands do not need it.
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    pixels, target = datasets.load_digits(return_X_y=True)
    images = np.round(pixels * (255 / _GREYS)).astype(np.uint8).reshape(-1, 1, 8, 8)
    labels = target.astype(np.int64)
    train, test = train_test_split(
        np.arange(len(labels)), test_size=0.25, random_state=0, stratify=labels
    )
    scaled = images[train] / 255
    return Dataset(
        name="digits",
        splits={
            "train": Split(images[train], labels[train]),
            "test": Split(images[test], labels[test]),
        },
        class_names=tuple(str(digit) for digit in range(10)),
        mean=(float(scaled.mean()),),
        std=(float(scaled.std()),),
    )
