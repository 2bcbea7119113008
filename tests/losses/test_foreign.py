"""Losses written elsewhere, torch's own included, as a base of ours."""

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from losses.catalogue import batch, value_and_gradient
from torch import Tensor, nn
from torch.testing import assert_close

from labelproof import CrossEntropy, Normalized, SparseRegularized, as_loss, lp_norm, sharpen
from labelproof.losses import Outputs
from labelproof.losses.batch import Reduction

REDUCTIONS: tuple[Reduction, ...] = ("none", "mean", "sum")
class_weight = torch.tensor([0.5, 2.0, 0.25, 1.0, 3.0], dtype=torch.float64)


class SquaredMarginEach(nn.Module):
    """A user's own loss of logits, which are not probabilities: it matters where they are."""

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return (logits.gather(1, target[:, None]).squeeze(1) - 1) ** 2


class SquaredMargin(SquaredMarginEach):
    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return super().forward(logits, target).mean()


def test_torch_cross_entropy_is_ours():
    for shape, reduction in itertools.product([(6, 5), (4, 5, 3)], REDUCTIONS):
        logits, label = batch(*shape)
        share = torch.softmax(batch(*shape, seed=1)[0], dim=1)
        some = torch.where(label == 2, -1, label)
        for weight, target, normalize in itertools.product(
            (None, class_weight), (label, some, share), (True, False)
        ):
            settings: Any = {"weight": weight, "ignore_index": -1, "reduction": reduction}
            theirs = SparseRegularized(nn.CrossEntropyLoss(**settings), normalize=normalize)
            ours = SparseRegularized(CrossEntropy(**settings), normalize=normalize)
            found = value_and_gradient(theirs, logits, target)
            assert_close(found, value_and_gradient(ours, logits, target))
            assert_close(tuple(theirs.parts(logits, target)), tuple(ours.parts(logits, target)))


def test_other_losses_of_torch_and_the_users_stay_their_own():
    logits, label = batch()
    several = (batch(seed=1)[0] > 0).double()  # targets that are no distribution
    sharp = sharpen(logits, temperature=0.5)
    each = lp_norm(torch.log_softmax(sharp, dim=1), p=0.1)
    penalty = {"none": each, "mean": each.mean(), "sum": each.sum()}
    for reduction in REDUCTIONS:
        theirs = SparseRegularized(nn.CrossEntropyLoss(reduction=reduction))
        ours = SparseRegularized(CrossEntropy(reduction=reduction))
        one = logits[0], label[0]
        assert_close(tuple(theirs.parts(*one)), tuple(ours.parts(*one)))
        for base, target in (
            (nn.CrossEntropyLoss(label_smoothing=0.2, reduction=reduction), label),
            (nn.MultiMarginLoss(p=2, margin=0.7, reduction=reduction), label),
            (nn.BCEWithLogitsLoss(reduction=reduction), several),
        ):
            if reduction == "none" and target is several:  # one value for each class
                continue
            loss = SparseRegularized(base, weight=3)
            assert_close(loss(logits, target), base(sharp, target) + 3 * penalty[reduction])
            assert_close(loss.parts(logits, target).penalty, penalty[reduction])
    for mine, reduction in ((SquaredMargin(), "mean"), (SquaredMarginEach(), "none")):
        value = SparseRegularized(mine, weight=3)(logits, label)
        assert_close(value, mine(sharp, label) + 3 * penalty[reduction])


def test_taken_in_a_module_keeps_its_values():
    logits, label = batch(12, 5)
    alone = [
        nn.CrossEntropyLoss(ignore_index=1),
        nn.CrossEntropyLoss(ignore_index=0, weight=class_weight),
        nn.CrossEntropyLoss(label_smoothing=0.2, weight=class_weight),
    ]
    parts = [  # which keep them as a part of a sum, too
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(weight=class_weight),
        nn.CrossEntropyLoss(label_smoothing=0.2),
        nn.MultiMarginLoss(p=2, margin=0.7),
        nn.MultiMarginLoss(weight=class_weight),
    ]
    for module, reduction in itertools.product([*alone, *parts], REDUCTIONS):
        module.reduction = reduction
        assert_close(as_loss(module)(logits, label), module(logits, label))
        if module in parts:
            assert_close((1 * as_loss(module))(logits, label), module(logits, label))


def test_taken_in_every_label_has_its_value_and_modules_add_and_normalize():
    logits, label = batch()
    for ignored in (-100, 0, 3):
        theirs = as_loss(nn.CrossEntropyLoss(ignore_index=ignored))
        ours = CrossEntropy(ignore_index=ignored)
        assert_close(theirs.label_values(Outputs(logits)), ours.label_values(Outputs(logits)))
    theirs = 10 * Normalized(nn.CrossEntropyLoss()) + 0.1 * as_loss(nn.CrossEntropyLoss())
    ours = 10 * Normalized(CrossEntropy()) + 0.1 * CrossEntropy()
    for target in (label, torch.softmax(batch(seed=1)[0], dim=1)):
        assert_close(theirs(logits, target), ours(logits, target))
        sparse = (SparseRegularized(each)(logits, target) for each in (theirs, ours))
        assert_close(*sparse)
    # The caller's module is left alone.
    module = nn.CrossEntropyLoss(weight=class_weight)
    before = module(logits, label)
    taken = as_loss(module)
    taken(logits, label)
    assert module.reduction == "mean"
    assert module.weight is class_weight
    assert torch.equal(module(logits, label), before)
    assert torch.equal(before, F.cross_entropy(logits, label, weight=class_weight))


def test_what_cannot_be_a_part_of_another_loss_is_refused():
    logits, label = batch()
    smoothed = as_loss(nn.CrossEntropyLoss(label_smoothing=0.2, weight=class_weight))
    for loss, kind, message in (
        (1 * smoothed, ValueError, "class weights and label smoothing cannot be a part"),
        (CrossEntropy() + as_loss(SquaredMargin()), ValueError, "SquaredMargin returned shape"),
        (Normalized(SparseRegularized(nn.CrossEntropyLoss())), TypeError, "CrossEntropyLoss .*as_"),
    ):
        with pytest.raises(kind, match=message):
            loss(logits, label)
    for wrapper in (as_loss, SparseRegularized, Normalized):
        with pytest.raises(TypeError, match=r"Module, got function; .* forward = staticmethod"):
            wrapper(F.cross_entropy)

    class Mine(nn.Module):
        forward = staticmethod(F.cross_entropy)

    parts = SparseRegularized(Mine(), temperature=1, normalize=False).parts(logits, label)
    torch.testing.assert_close(parts.base, F.cross_entropy(logits, label))


def test_small_integers_are_labels_for_the_penalty_of_a_foreign_base_too():
    logits = batch(3, 200, dtype=torch.float32)[0]
    label = torch.tensor([0, 156, 199])  # in uint8 the second equals the ignored -100
    for weight in (None, torch.linspace(1, 2, 200)):
        loss = SparseRegularized(nn.CrossEntropyLoss(weight=weight))
        assert_close(loss.parts(logits, label.to(torch.uint8)), loss.parts(logits, label))
