"""Our cross entropy is torch's, in every shape, reduction and kind of target that torch takes."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from losses.catalogue import batch, value_and_gradient
from torch import Tensor
from torch.testing import assert_close

from labelproof import CrossEntropy, SparseRegularized, as_loss

SHAPES: list[tuple[int, ...]] = [(7, 5), (1, 5), (4, 5, 3), (2, 5, 3, 2), (2, 5, 1, 3, 2)]
F_LOSS = torch.nn.CrossEntropyLoss()
WEIGHT = torch.tensor([0.2, 1.0, 3.0, 0.0, 0.7], dtype=torch.float64)


def compare(settings: dict[str, Any], logits: Tensor, target: Tensor) -> None:
    tolerance = {torch.float32: 1e-6, torch.float64: 1e-14}[logits.dtype]
    expected = value_and_gradient(partial(F.cross_entropy, **settings), logits, target)
    found = value_and_gradient(CrossEntropy(**settings), logits, target)
    assert found[0].shape == expected[0].shape
    assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_class_indices_class_probabilities_and_single_examples():
    for shape, reduction, dtype in itertools.product(
        SHAPES, ("none", "mean", "sum"), (torch.float32, torch.float64)
    ):
        logits, label = batch(*shape, dtype=dtype)
        label.view(-1)[:1] = 1  # one example counts, or torch's mean is NaN
        share = torch.softmax(batch(*shape, seed=1, dtype=dtype)[0], dim=1)
        for weight, ignored in itertools.product((None, WEIGHT.to(dtype)), (-100, 2)):
            settings = {"reduction": reduction, "weight": weight, "ignore_index": ignored}
            targets = [label] if ignored == 2 else [label, share]
            for target in targets:
                compare(settings, logits, target)
                if logits.ndim == 2:
                    compare(settings, logits[0], target[0])


def test_any_integer_type_is_an_index_and_arguments_have_torchs_names():
    logits, label = batch()
    for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32"):
        value = CrossEntropy()(logits, label.to(getattr(torch, name)))
        assert torch.equal(value, CrossEntropy()(logits, label))
    for loss in (CrossEntropy(), SparseRegularized(F_LOSS), as_loss(F_LOSS)):
        assert torch.equal(loss(input=logits, target=label), loss(logits, label))


def test_autocast_leaves_the_loss_in_single_precision():
    logits, label = batch(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = CrossEntropy()(logits, label)
    assert value.dtype == torch.float32
    assert_close(value, F.cross_entropy(logits, label))
