"""Human labels: CIFAR-10N and CIFAR-100N, beside the publisher's clean ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from labelproof.noise.sampling import NoisyLabels
from labelproof.npz import check_room, read_npz
from labelproof.ranges import choose
from labelproof.seeds import admit_labels

_MOST_CLASSES = 10_000


class HumanSet(NamedTuple):
    """One set of human labels of a training set."""

    key: str
    """Its name in the publishers' files."""
    rate: float
    """The share of wrong labels."""


HUMAN_LABELS: Mapping[str, HumanSet] = {
    "aggregate": HumanSet("aggre_label", 0.0901),
    "random1": HumanSet("random_label1", 0.1723),
    "random2": HumanSet("random_label2", 0.1812),
    "random3": HumanSet("random_label3", 0.1764),
    "worse": HumanSet("worse_label", 0.4021),
    "noisy": HumanSet("noisy_label", 0.4020),
}
"""For CIFAR-10N the majority of three annotators, each of them, and a wrong one if there is any;
for CIFAR-100N the only annotator. With the rates that the publishers report."""

_CLEAN = "clean_label"


def human_labels(
    path: str | PathLike[str], which: str, *, labels: ArrayLike | None = None
) -> NoisyLabels:
    """Read human labels of CIFAR's training images.

    Args:
        path: The publishers' `CIFAR-10_human.pt` or `CIFAR-100_human.pt`, or an `.npz` file with
            the same arrays. Neither can run code when it is read.
        which: `aggregate`, `random1`, `random2`, `random3` or `worse` of CIFAR-10N; `noisy` of
            CIFAR-100N.
        labels: The dataset's own training labels, `(N)`. They must equal the file's clean labels:
            in another order, labels would go to the wrong images.

    Returns:
        The labels, with their empirical transition matrix.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/n.npz", clean_label=[0, 1, 1], worse_label=[0, 0, 1])
        ...     human_labels(f"{folder}/n.npz", "worse", labels=[0, 1, 1]).noisy
        array([0, 0, 1])

    Reference:
        Wei et al., "Learning with Noisy Labels Revisited: A Study Using Real-World Human
        Annotations", ICLR 2022.
    """
    path, key = Path(path), HUMAN_LABELS[choose("which", which, HUMAN_LABELS)].key
    arrays = _read(path)
    if missing := {_CLEAN, key} - set(arrays):
        raise ValueError(
            f"{path}: expected an array {min(missing)!r} for {which!r} labels, got "
            f"{', '.join(sorted(arrays)) or 'none'}"
        )
    clean, noisy = (admit_labels(arrays[name], name=f"{path}: {name}") for name in (_CLEAN, key))
    if len(clean) != len(noisy):
        raise ValueError(f"{path}: expected {len(clean)} {which!r} labels, got {len(noisy)}")
    if labels is not None and not np.array_equal(labels, clean):
        raise ValueError(
            f"labels: expected the {len(clean)} clean labels of {path} in their order; the "
            "images are in another order, or another dataset's"
        )
    num_classes = int(max(clean.max(initial=0), noisy.max(initial=0))) + 1
    if num_classes > _MOST_CLASSES:
        raise ValueError(f"{path}: expected labels below {_MOST_CLASSES}, got {num_classes - 1}")
    result = NoisyLabels(clean, noisy, np.eye(num_classes))
    return replace(result, matrix=result.empirical_matrix)


def _read(path: Path) -> dict[str, NDArray[np.generic]]:
    if path.suffix not in (".npz", ".pt"):
        raise ValueError(f"path: expected an .npz or .pt file, got {str(path)!r}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        if path.suffix == ".npz":
            return read_npz(path)
        check_room(path)
        with torch.serialization.safe_globals(_ARRAY_PARTS):
            content = torch.load(path, map_location="cpu", weights_only=True)
        return {name: np.asarray(values) for name, values in content.items()}
    except Exception:  # a corrupted file makes zipfile and torch raise almost anything
        # torch's own message suggests to read the file in a way that can run code.
        raise ValueError(f"{path}: expected named arrays and nothing else in the file") from None


# What an array of whole numbers is made of in a .pt file, by the names it had before and after
# numpy 2; torch refuses everything else.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_ARRAY_PARTS = [
    (_RECONSTRUCT, "numpy.core.multiarray._reconstruct"),
    (_RECONSTRUCT, "numpy._core.multiarray._reconstruct"),
    np.ndarray,
    np.dtype,
    *{type(np.dtype(code)) for code in np.typecodes["AllInteger"]},
]
