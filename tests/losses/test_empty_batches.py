"""A batch of no examples is one like any other: it costs nothing, and nothing learns from it."""

import pytest
import torch
from losses.catalogue import DISTINCT, NUM_CLASSES, VARIANTS, Case, names, sparse
from torch import Tensor

from labelproof import CrossEntropy, SparseRegularized, parse_loss
from labelproof.losses import negative_learning

CASES = [*DISTINCT, *(sparse(DISTINCT[0], variant) for variant in VARIANTS)]
every_loss = pytest.mark.parametrize("case", CASES, ids=names(CASES))


def empties(*shape: int) -> list[tuple[Tensor, Tensor]]:
    """Logits of a shape, with class indices and with class probabilities."""
    logits = torch.zeros(shape)
    return [(logits, logits[:, 0].long()), (logits, torch.zeros(shape))]


@every_loss
def test_it_costs_nothing(case: Case) -> None:
    for logits, target in [*empties(0, NUM_CLASSES), *empties(2, NUM_CLASSES, 0)]:
        shape = (logits.shape[0], *logits.shape[2:])
        given = logits.clone().requires_grad_()
        for reduction in ("sum", "mean", "none"):
            value = case.make(reduction=reduction)(given, target)
            assert value.shape == (shape if reduction == "none" else ())
            assert value.sum() == 0
            (gradient,) = torch.autograd.grad(value.sum(), given)
            assert gradient.shape == logits.shape
        assert case.make().per_example(logits, target).shape == shape


def test_sum_and_none_are_torchs_own() -> None:
    logits, target = empties(0, 4)[0]
    for reduction in ("sum", "none"):
        theirs = torch.nn.functional.cross_entropy(logits, target, reduction=reduction)
        assert torch.equal(CrossEntropy(reduction=reduction)(logits, target), theirs)


def test_class_weights_and_checks_make_no_difference() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0])
    loss = parse_loss("ce+sr", weight=weight, check=True)
    for logits, target in empties(0, 3):
        assert loss(logits, target) == 0


def test_the_parts_of_a_regularized_loss() -> None:
    logits, target = empties(0, 3)[0]
    parts = SparseRegularized(CrossEntropy()).parts(logits, target)
    assert [float(part) for part in parts] == [0, 0, 0, 0]


def test_drawn_labels_and_functions() -> None:
    logits, target = empties(0, 3)[0]
    assert parse_loss("nl(samples=2)")(logits, target) == 0
    assert negative_learning(logits, target, complementary=target).shape == (0,)


def test_the_last_layer_gets_a_gradient_of_zero() -> None:
    layer = torch.nn.Linear(3, 4)
    parse_loss("ce+sr")(layer(torch.zeros(0, 3)), torch.zeros(0, dtype=torch.long)).backward()
    assert layer.weight.grad is not None
    assert not layer.weight.grad.any()
