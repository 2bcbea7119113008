"""Our cross entropy is torch's, in every shape, reduction and kind of target that torch takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from losses.catalogue import batch, value_and_gradient
from torch import Tensor
from torch.testing import assert_close

from labelproof import CrossEntropy, SparseRegularized, as_loss
from labelproof.losses.batch import Reduction

SHAPES: list[tuple[int, ...]] = [(7, 5), (1, 5), (4, 5, 3), (2, 5, 3, 2), (2, 5, 1, 3, 2)]
REDUCTIONS: tuple[Reduction, ...] = ("none", "mean", "sum")
F_LOSS = torch.nn.CrossEntropyLoss()
weight = torch.tensor([0.2, 1.0, 3.0, 0.0, 0.7], dtype=torch.float64)


def compare(ours: CrossEntropy, theirs: dict[str, Any], logits: Tensor, target: Tensor) -> None:
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-14}[logits.dtype]
    expected = value_and_gradient(partial(F.cross_entropy, **theirs), logits, target)
    found = value_and_gradient(ours, logits, target)
    assert found[0].shape == expected[0].shape
    assert_close(found, expected, rtol=tolerance, atol=tolerance)


def every_setting() -> Iterator[tuple[tuple[int, ...], Reduction, torch.dtype]]:
    return itertools.product(SHAPES, REDUCTIONS, (torch.float32, torch.float64))


def test_class_indices():
    for shape, reduction, dtype in every_setting():
        logits, label = batch(*shape, dtype=dtype)
        compare(CrossEntropy(reduction=reduction), {"reduction": reduction}, logits, label)
        for class_weight, ignored in itertools.product((None, weight.to(dtype)), (-100, 2)):
            theirs = {"reduction": reduction, "weight": class_weight, "ignore_index": ignored}
            ours = CrossEntropy(reduction=reduction, weight=class_weight, ignore_index=ignored)
            some = label.clone()
            some.view(-1)[:1] = 1  # one example counts, or torch's mean is NaN
            compare(ours, theirs, logits, some)


def test_class_probabilities():
    for shape, reduction, dtype in every_setting():
        logits, _ = batch(*shape, dtype=dtype)
        share = torch.softmax(batch(*shape, seed=1, dtype=dtype)[0], dim=1)
        for class_weight in (None, weight.to(dtype)):
            ours = CrossEntropy(reduction=reduction, weight=class_weight)
            compare(ours, {"reduction": reduction, "weight": class_weight}, logits, share)


def test_single_example():
    for _, reduction, dtype in every_setting():
        logits, label = batch(dtype=dtype)
        theirs = {"reduction": reduction, "weight": weight.to(dtype)}
        ours = CrossEntropy(reduction=reduction, weight=weight.to(dtype))
        compare(ours, theirs, logits[0], torch.tensor(2))
        compare(ours, theirs, logits[0], torch.softmax(logits[1], dim=0))
        compare(CrossEntropy(reduction=reduction), {"reduction": reduction}, logits[0], label[0])


INTEGERS = [
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32),
]


def test_any_integer_type_is_an_index():
    logits, label = batch()
    for dtype in INTEGERS:
        assert torch.equal(CrossEntropy()(logits, label.to(dtype)), CrossEntropy()(logits, label))


def test_autocast_leaves_the_loss_in_single_precision():
    logits, label = batch(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = CrossEntropy()(logits, label)
    assert value.dtype == torch.float32
    assert_close(value, F.cross_entropy(logits, label))


def test_arguments_have_torchs_names():
    logits, target = batch()
    for loss in (CrossEntropy(), SparseRegularized(F_LOSS), as_loss(F_LOSS)):
        assert torch.equal(loss(input=logits, target=target), loss(logits, target))
