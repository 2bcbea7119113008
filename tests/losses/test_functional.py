"""Each loss as a function is its module without a reduction."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from losses.catalogue import batch
from torch import Tensor
from torch.testing import assert_close

from labelproof import CrossEntropy, Loss, SparseRegularized, lp_norm, sharpen
from labelproof.losses import (
    Focal,
    GeneralizedCrossEntropy,
    MeanAbsoluteError,
    NegativeLearning,
    PartiallyHuberizedCrossEntropy,
    ReverseCrossEntropy,
    SymmetricCrossEntropy,
    cross_entropy,
    focal,
    generalized_cross_entropy,
    mean_absolute_error,
    negative_learning,
    partially_huberized_cross_entropy,
    reverse_cross_entropy,
    symmetric_cross_entropy,
)

PAIRS: list[tuple[Callable[..., Tensor], Callable[..., Loss], list[dict[str, Any]]]] = [
    (cross_entropy, CrossEntropy, [{}]),
    (focal, Focal, [{}, {"gamma": 2, "detach": True}]),
    (mean_absolute_error, MeanAbsoluteError, [{}]),
    (reverse_cross_entropy, ReverseCrossEntropy, [{}, {"log_zero": -4, "clamp": 0.1}]),
    (generalized_cross_entropy, GeneralizedCrossEntropy, [{}, {"q": 0.1, "clamp": 0.1}]),
    (
        symmetric_cross_entropy,
        SymmetricCrossEntropy,
        [{}, {"alpha": 6, "beta": 0.1, "log_zero": -4, "clamp": 0.1}],
    ),
    (partially_huberized_cross_entropy, PartiallyHuberizedCrossEntropy, [{}, {"tau": 2}]),
    (
        negative_learning,
        lambda **options: NegativeLearning(expected=True, **options),
        [{}, {"clamp": 0.3}],
    ),
]


def test_function_is_module():
    logits, label = batch(3, 5, 2)
    share = torch.softmax(batch(3, 5, 2, seed=1)[0], dim=1)
    for function, module, choices in PAIRS:
        for options, target in itertools.product(choices, (label, share)):
            found, expected = (
                value_and_gradient(
                    lambda given, each=each, target=target: each(given, target), logits
                )
                for each in (
                    functools.partial(function, **options),
                    module(reduction="none", **options),
                )
            )
            assert found[0].shape == label.shape
            assert_close(found, expected, rtol=0, atol=0, msg=f"{function.__name__}{options}")


def value_and_gradient(cost: Callable[[Tensor], Tensor], logits: Tensor) -> tuple[Tensor, Tensor]:
    given = logits.clone().requires_grad_()
    value = cost(given)
    return value.detach(), torch.autograd.grad(value.sum(), given)[0]


def test_sparse_regularization_is_sharpen_and_lp_norm():
    logits, label = batch(3, 5, 2)
    for normalize, clamp in itertools.product((True, False), (None, 0.05)):
        sharp = sharpen(logits, temperature=0.3, normalize=normalize)
        penalty = lp_norm(torch.log_softmax(sharp, dim=1), p=0.4, clamp=clamp)
        base = CrossEntropy(reduction="none")
        loss = SparseRegularized(base, 0.3, 0.4, 2.5, normalize=normalize, clamp=clamp)
        assert_close(loss(logits, label), cross_entropy(sharp, label) + 2.5 * penalty)
