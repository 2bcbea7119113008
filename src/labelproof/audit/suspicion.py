"""How probable it is that each label is wrong, and which one would be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelproof.audit.anchors import read_word
from labelproof.audit.findings import DOUBTFUL
from labelproof.audit.noise_model import NoiseModel
from labelproof.audit.predictions import Table

__all__ = ["Suspicion", "suspect"]

_CHUNK = 1 << 15


class Suspicion(NamedTuple):
    """What is thought of each label."""

    score: NDArray[np.float32]
    """The probability that it is wrong."""
    suggested: NDArray[np.int64]
    """The most probable of the other classes where it is more probably wrong than right, and the
    given one where it is not."""
    confusion: NDArray[np.int64]
    """`(C, C)`: how often each class is predicted (row) where each label is given (column)."""


def suspect(
    logits: Table, given: NDArray[np.int64], model: NoiseModel, *, shared: float = 0.0
) -> Suspicion:
    """Weigh what the network says about each sample against how labels come about.

    By Bayes' rule the true class is `j` with a probability in proportion to `q_j T_jk`, where `k`
    is the given label, and `q` what the network says, read through the noise that it has learned. A
    label that is often put on another class by mistake is suspected sooner
    than one that never is, though the network be of the same opinion.

    Args:
        logits: `(N, C)`; may be a file that is mapped, which is read part by part.
        given: The labels as they came, `(N)`.
        model: From `fit_noise_model`, or from `read_through`.
        shared: From `share_of_doubts`: how probable it is that, where network and label differ,
            the network is right whatever its doubts.

    Example:
        >>> matrix = np.array([[0.9, 0.1], [0.0, 1.0]])
        >>> model = NoiseModel(matrix, 1.0, 0.0, matrix / 2)
        >>> found = suspect(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([1, 0]), model)
        >>> found.score.round(2), found.suggested
        (array([0.42, 0.  ], dtype=float32), array([1, 0]))
    """
    size, classes = logits.shape
    score = np.empty(size, np.float32)
    suggested = np.empty(size, np.int64)
    confusion = torch.zeros(classes * classes, dtype=torch.int64)
    transposed = torch.from_numpy(model.transition.T.astype(np.float32).copy())
    for part, chunk in _chunks(logits):
        labels = torch.from_numpy(given[part])
        largest, predicted = chunk.max(dim=1)
        # First, so that no logit is too large a number once it is divided.
        chunk -= largest[:, None]
        word = torch.softmax(chunk / model.temperature, dim=1)
        if model.reading is not None:
            word = torch.from_numpy(read_word(word.numpy(), model.reading))
        joint = word.mul_(transposed[labels])
        told = joint.sum(dim=1, keepdim=True)
        # A label that no class can have by the matrix is wrong, whatever the true one is.
        joint.mul_((1 - shared) / torch.clamp_(told, min=1e-30))
        if shared:
            joint.scatter_add_(1, predicted[:, None], torch.full_like(told, shared))
        doubt = (1 - joint.gather(1, labels[:, None])[:, 0]).clamp_(0, 1)
        score[part] = doubt.numpy()
        doubtful = (doubt > DOUBTFUL).nonzero()[:, 0]
        others = joint[doubtful].scatter_(1, labels[doubtful, None], -1.0)
        suggested[part] = labels.index_copy(0, doubtful, others.argmax(dim=1)).numpy()
        confusion += torch.bincount(predicted * classes + labels, minlength=classes * classes)
    return Suspicion(score, suggested, confusion.reshape(classes, classes).numpy())


def _chunks(logits: Table) -> Iterator[tuple[slice, Tensor]]:
    for begin in range(0, len(logits), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        yield part, torch.from_numpy(np.array(logits[part], dtype=np.float32))
