"""Long-tailed and step imbalance, as indices of the samples to keep.

Reference:
    Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019 (long-tailed);
    Buda et al., "A systematic study of the class imbalance problem in convolutional neural
    networks", Neural Networks 2018 (step).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelproof.data.splits import admit_labels, order_by_class
from labelproof.ranges import within
from labelproof.seeds import Seed, as_generator
from labelproof.text import parse_form

_FORMS = ["none", "long-tailed:FACTOR", "step:FACTOR"]


@dataclass(frozen=True)
class Imbalance:
    r"""A kind of imbalance and its factor; prints as the text it was read from.

    Attributes:
        kind: `"long-tailed"` keeps $\lfloor n f^{i / (k - 1)} \rfloor$ samples of class i of k,
            `"step"` $\lfloor n f \rfloor$ of the last half of the classes, `"none"` all.
        factor: $f$, the smallest class over the largest, in (0, 1].

    >>> Imbalance("long-tailed", 0.01).counts(5000, 10)
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    >>> Imbalance("step", 0.1).counts(500, 5)
    [500, 500, 500, 50, 50]
    >>> Imbalance("step", 0.5).keep([0, 0, 0, 0, 1, 1, 1, 1], seed=1)
    array([0, 1, 2, 3, 4, 7])
    """

    kind: str
    factor: float = 1.0

    def counts(self, largest: int, num_classes: int) -> list[int]:
        """How many samples each class keeps, where the largest has `largest`."""
        if largest < 1 or num_classes < 2:
            raise ValueError(f"labels: expected samples of 2 classes or more, got {num_classes}")
        factor = within("factor", self.factor, 0, 1, open_low=True)
        powers = [0.0] * num_classes
        if self.kind == "long-tailed":
            powers = [index / (num_classes - 1) for index in range(num_classes)]
        elif self.kind == "step":
            powers[num_classes - num_classes // 2 :] = [1.0] * (num_classes // 2)
        # At least one sample: a class without any is another task, not an imbalanced one.
        return [max(int(largest * factor**power), 1) for power in powers]

    def keep(self, labels: ArrayLike, *, seed: Seed) -> NDArray[np.int64]:
        """Choose samples at random; all of a class that is small already.

        Args:
            labels: Class indices, `(N)`.
            seed: A number, or a generator, which is advanced; the same on every platform.

        Returns:
            The indices to keep, in rising order.
        """
        given = admit_labels(labels)
        if self.kind == "none":
            return np.arange(len(given))
        sizes = np.bincount(given)
        counts = self.counts(int(sizes.max(initial=0)), len(sizes))
        order = order_by_class(given, as_generator(seed))
        rank = np.arange(len(given)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.sort(order[rank < np.repeat(counts, sizes)])

    def __str__(self) -> str:
        factor = repr(self.factor).removesuffix(".0")  # all digits: a run is made from this text
        return self.kind if self.kind == "none" else f"{self.kind}:{factor}"


def parse_imbalance(text: str) -> Imbalance:
    """Read `none`, `long-tailed:FACTOR` or `step:FACTOR`.

    >>> parse_imbalance("long-tailed:0.01")
    Imbalance(kind='long-tailed', factor=0.01)
    >>> parse_imbalance("longtailed:0.01")
    Traceback (most recent call last):
        ...
    ValueError: imbalance: expected none, long-tailed:FACTOR or step:FACTOR, got 'longtailed:0.01';
    did you mean 'long-tailed'?
    """
    form, values = parse_form(text, _FORMS, what="imbalance")
    factor = within("imbalance factor", values.get("FACTOR", 1.0), 0, 1, open_low=True)
    return Imbalance(form.partition(":")[0], factor)
