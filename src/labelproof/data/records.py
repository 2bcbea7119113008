"""Images and labels as a publisher's files hold them, before they become a dataset."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Records"]


class Records(NamedTuple):
    """Images with the labels they were published with.

    Attributes:
        images: `(N, C, H, W)`.
        labels: `(N, K)`: one column, or for CIFAR-100 the coarse and the fine label.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
