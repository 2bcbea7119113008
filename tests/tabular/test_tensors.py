"""A blend of plain tensors predicts what the committee does, and refuses what is none."""

import numpy as np
import pytest
import torch
from torch import Tensor

from labelproof.audit.noise_model import NoiseModel
from labelproof.models.blend import Blend
from labelproof.tabular.candidates import (
    Candidate,
    Confirmed,
    ConfirmedKernel,
    Forest,
    Kernel,
    Linear,
    SoftRows,
    Words,
)
from labelproof.tabular.committee import Committee


def rows_and_labels(classes: int, present: int) -> tuple[np.ndarray, np.ndarray]:
    """Float32 rows as a table has them, of some of the classes: the ids of two terms at the end."""
    generator = np.random.default_rng(0)
    given = np.arange(120) % present
    rows = generator.normal(size=(120, 3)) + given[:, None]
    terms = generator.integers(5, size=(120, 2)) + given[:, None]
    return np.hstack([rows, terms]).astype(np.float32), np.eye(classes)[given]


def committee(candidate: Candidate, rows: np.ndarray, labels: np.ndarray) -> Committee:
    wide, classes = rows[:, :3].astype(np.float64), labels.shape[1]
    terms = rows[:, 3:].astype(np.int32)
    candidate.fit(SoftRows(wide, labels, np.ones(len(rows)), terms))
    variants = len(candidate.predict(wide[:2], terms[:2]))
    noise = NoiseModel(np.eye(classes), 1.0, 0.0, np.eye(classes) / classes)
    even, warm = np.full(variants, 1 / variants), np.linspace(0.5, 2.0, variants)
    prior, mixing = np.linspace(1.0, 1.5, classes), np.eye(classes)
    mixing[0, :2] = 0.7, 0.3
    parts = [candidate], even, warm, mixing, prior, 0.8, noise, {}, labels.astype(np.float32)
    return Committee(*parts, ids=np.array([3, 4]))


FORESTS = [Forest(), Confirmed(rounds=2)]
KINDS = [Linear(), Kernel(landmarks=20), ConfirmedKernel(), *FORESTS, Words(words=np.array([1]))]


@pytest.mark.parametrize("candidate", KINDS, ids=lambda each: each.names[0])
def test_it_predicts_what_the_classifiers_do(candidate: Candidate) -> None:
    for classes, present in ((2, 2), (3, 2)):
        rows, labels = rows_and_labels(classes, present)
        model = committee(candidate, rows, labels)
        blend = Blend(model.tensors())
        rows[0, 3:] = 99, 0  # a term that training has not seen, and no other
        told = blend(torch.from_numpy(rows)).exp().numpy()
        np.testing.assert_allclose(told, model.predict_proba(rows), atol=1e-6)


def test_tensors_that_are_no_blend_are_refused() -> None:
    rows, labels = rows_and_labels(3, 3)
    good = committee(Forest(), rows, labels).tensors()

    def changed(name: str, value: Tensor) -> dict[str, Tensor]:
        return {**good, f"0.forest.{name}": value}

    left, feature = good["0.forest.left"], good["0.forest.feature"]
    words = committee(Words(words=np.array([1])), rows, labels).tensors()
    backwards = left.clone()
    backwards[-1] = 0  # a loop that would never end
    hostile = {
        "nothing": {},
        "a member missing": {key: each for key, each in good.items() if not key.startswith("0.")},
        "another kind": {"0.pickle.code": left, **good},
        "a place that is no number": {"x.forest.left": left, **good},
        "a loop": changed("left", backwards),
        "a loop to the right": changed("right", torch.zeros_like(left)),
        "a child past the end": changed("right", left + len(left)),
        "a feature that is not there": changed("feature", feature + 3),
        "a feature before the first": changed("feature", feature - 9),
        "a root past the end": changed("roots", good["0.forest.roots"] + len(left)),
        "ids past the end": {**good, "ids": torch.tensor([3, 9])},
        "values of fewer nodes": changed("value", good["0.forest.value"][:3]),
        "terms without a slope": {**words, "0.words.slopes": words["0.words.slopes"][:, :2]},
        "values of other classes": changed("value", good["0.forest.value"][:, :2]),
        "a mixture of other classes": {**good, "mixing": torch.eye(2)},
        "a mixture of nothing": {**good, "mixing": good["mixing"] * float("nan")},
        "a prior that is one number": {**good, "prior": torch.tensor(1.0)},
        "numbers that are none": {**good, "weights": good["weights"] * float("nan")},
    }
    for name, tensors in hostile.items():
        with pytest.raises(ValueError, match="not those of a blend"):
            pytest.fail(f"{name}: {Blend(tensors)}")
