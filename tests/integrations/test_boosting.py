"""Losses as boosting objectives: derivatives as autograd has them, and trees that learn by them."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor

from labelproof import CrossEntropy, GeneralizedCrossEntropy, parse_loss
from labelproof.integrations.boosting import boosting_objective, differentiate

LOSSES = ["ce", "gce(q=0.7)", "10*nce+mae", "sce", "fl", "ce+sr"]


@pytest.mark.parametrize("text", LOSSES)
def test_derivatives_are_those_of_the_full_hessian(text: str) -> None:
    generator = np.random.default_rng(0)
    scores, labels = generator.normal(size=(5, 4)), generator.integers(4, size=5)
    gradient, hessian = differentiate(text, scores, labels)
    loss = parse_loss(text, reduction="none")
    for row in range(5):
        target = torch.tensor(labels[row : row + 1])

        def value(logits: torch.Tensor, target: torch.Tensor = target) -> torch.Tensor:
            return loss(logits[None], target).sum()

        point = torch.tensor(scores[row])
        whole: Any = torch.autograd.functional.hessian(value, point)
        np.testing.assert_allclose(hessian[row], whole.diagonal().numpy(), atol=1e-9)
        step = 1e-6 * np.eye(4)
        slopes = [
            (value(point + torch.tensor(e)) - value(point - torch.tensor(e))) / 2e-6 for e in step
        ]
        np.testing.assert_allclose(gradient[row], np.array(slopes), atol=1e-5)


def test_the_objective_is_positive_weighed_and_takes_one_score_for_two_classes() -> None:
    generator = np.random.default_rng(0)
    labels, scores = generator.integers(2, size=50), generator.normal(size=50) * 5
    gradient, hessian = boosting_objective("gce(q=0.7)", floor=0.02)(labels, scores)
    assert gradient.shape == hessian.shape == (50,)
    assert hessian.min() == 0.02
    table = np.column_stack([np.zeros(50), scores])
    np.testing.assert_allclose(differentiate("gce(q=0.7)", table, labels).gradient[:, 1], gradient)
    weighed = boosting_objective("gce(q=0.7)", floor=0.02)(labels, scores, np.full(50, 3.0))
    np.testing.assert_allclose(weighed, (3 * gradient, 3 * hessian))
    # Before the first tree all scores are 0.
    for loss in LOSSES:
        for start in (np.zeros(50), np.zeros((50, 2))):
            assert np.isfinite(boosting_objective(loss)(labels, start)).all(), loss
    with pytest.raises(ValueError, match="scores"):
        differentiate("ce", np.zeros(3), [0, 1, 0])
    with pytest.raises(ValueError, match="loss"):
        differentiate(CrossEntropy(), np.zeros((3, 2)), [0, 1, 0])


def test_trees_learn_by_it_in_spite_of_wrong_labels() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(600, 2))
    true = (rows.sum(axis=1) > 0).astype(int)
    noisy = np.where(generator.random(600) < 0.3, 1 - true, true)
    objective = boosting_objective(GeneralizedCrossEntropy(q=0.7, reduction="none"))
    scores = np.zeros((600, 2))
    for _ in range(20):
        gradient, hessian = objective(noisy, scores)
        for label in range(2):
            newton = -gradient[:, label] / hessian[:, label]
            tree = DecisionTreeRegressor(max_leaf_nodes=4, min_samples_leaf=40, random_state=0)
            scores[:, label] += 0.3 * tree.fit(rows, newton, hessian[:, label]).predict(rows)
    assert np.mean(scores.argmax(axis=1) == true) > 0.85


def test_xgboost_takes_it() -> None:
    xgboost: Any = pytest.importorskip("xgboost")
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(300, 3))
    labels = rows.argmax(axis=1)
    model = xgboost.XGBClassifier(objective=boosting_objective("gce(q=0.7)"), n_estimators=20)
    assert model.fit(rows, labels).score(rows, labels) > 0.9
