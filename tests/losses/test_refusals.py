"""What cannot be meant is refused at the door, by a message that names the argument."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from losses.catalogue import batch
from torch import Tensor

from labelproof import CrossEntropy, Loss, MeanAbsoluteError, Normalized, SparseRegularized
from labelproof.losses import LOSSES, LogitClip, Outputs, PointwiseLoss

nan = math.nan
MAKERS: dict[str, Callable[..., Loss]] = {
    **LOSSES,
    "clip": partial(LogitClip, CrossEntropy()),
    "sr": partial(SparseRegularized, CrossEntropy()),
}
SOME = [math.nan, "0.5", None, True]
FLOORS = [0, -1e-7, 0.6, nan, "1e-7", True]
REFUSED: dict[str, dict[str, list[Any]]] = {
    "fl": {"gamma": [-0.1, math.inf, *SOME], "detach": [1, None, "true"]},
    "gce": {"q": [0, -0.5, 1.01, nan, "0.7", None], "clamp": FLOORS},
    "rce": {"log_zero": [0, 4, nan, -math.inf, "-4", None], "clamp": FLOORS},
    "sce": {"alpha": [-1, nan, None], "beta": [-1, math.inf], "log_zero": [0, 4], "clamp": [0, 2]},
    "phuber": {"tau": [1, 0.5, -2, nan, "2"]},
    "nl": {"samples": [0, -1, 1.5, *SOME], "clamp": [0, 1], "expected": [1, None, "yes"]},
    "agce": {"a": [0, -1, 1e4], "q": [0, 11]},
    "aul": {"a": [1, 0.5]},
    "ael": {"a": [0, -1]},
    "amse": {"a": [0.5, nan]},
    "negfl": {"gamma": [-1]},
    "epsce": {"m": [-1, math.inf], "clamp": [0]},
    "epsfl": {"gamma": [-1]},
    "js": {"pi": [0, 1]},
    "taylor": {"terms": [0, 2.5, 101]},
    "bitempered": {"t1": [-0.1, 1.1], "t2": [0.9, 5]},
    "clip": {"delta": [0, -1, nan]},
    "sr": {
        "temperature": [0, -1, *SOME[:3]],
        "p": [0, -0.1, 1.1, *SOME[:3]],
        "weight": [-1, math.inf, *SOME[:3], torch.tensor(1.0)],
        "clamp": [0, 1],
        "normalize": [1, None],
        "vector": ["0.1", True],
    },
    "ce": {
        "reduction": ["average", None, "batchmean"],
        "ignore_index": [1.5, "1", None],
        "weight": [torch.ones(2, 2), *map(torch.tensor, ([1, 2], [1.0, -1.0], [1.0, nan])), [1.0]],
        "check": [1, None],
    },
}


def test_a_hyperparameter_out_of_range_or_of_another_kind():
    for loss, arguments in REFUSED.items():
        for name, values in arguments.items():
            for value in values:
                with pytest.raises((ValueError, TypeError), match=rf"{name}.*: expected"):
                    MAKERS[loss](**{name: value})


CAREFUL: list[Loss] = [
    CrossEntropy(check=True),
    SparseRegularized(CrossEntropy(check=True)),
    10 * Normalized(CrossEntropy(check=True)) + MeanAbsoluteError(check=True),
]
label = torch.tensor([0, 2])
logits = torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])
BAD_LOGITS: list[tuple[Any, str]] = [
    ([[1.0, 2.0]], r"logits: expected a floating-point tensor, got list"),
    (logits.long(), r"logits: expected a floating-point tensor, got torch.int64"),
    (logits.to(torch.complex64), r"logits: expected a floating-point tensor"),
    (torch.tensor(1.0), r"logits: expected shape \(C\), \(N, C\)"),
    (torch.zeros(0), r"logits: expected at least one class, got shape \(0,\)"),
    (torch.zeros(2, 0), r"logits: expected at least one class, got shape \(2, 0\)"),
    (torch.zeros(0, 3), r"target: expected shape \(0,\) .* got \(2,\)"),
    (torch.tensor([[0, 0, 0], [0, nan, 0]]), r"logits: .* 1 of 6 .* index \(1, 1\)"),
    (torch.tensor([[math.inf, 0, 0], [0, nan, 0]]), r"logits: .* 2 of 6 .* index \(0, 0\)"),
]
BAD_TARGETS: list[tuple[Any, str]] = [
    ([0, 2], r"target: expected a tensor .* got list"),
    (torch.tensor([True, False]), r"target: expected .* got torch.bool"),
    (torch.tensor([0, 3]), r"target: expected class indices from 0 to 2 .* got 3 at .*\(1,\)"),
    (torch.tensor([-1, 0]), r"target: expected class indices .* got -1 at index \(0,\)"),
    (torch.tensor([0, 1, 2]), r"target: expected shape \(2,\) .* got \(3,\)"),
    (torch.tensor([[0, 2]]), r"target: expected shape \(2,\) .* got \(1, 2\)"),
    (torch.eye(3)[:2].long(), r"target: .*one-hot.*\.float\(\) or \.argmax"),
    (torch.tensor([0.0, 2.0]), r"target: a floating-point target .* integer tensor"),
    (torch.full((2, 4), 0.25), r"target: .* shape \(2, 3\), got \(2, 4\)"),
    (torch.full((2, 3), 0.5), r"target: expected class probabilities"),
    (torch.tensor([[2.0, -1.0, 0.0]] * 2), r"target: expected class probabilities"),
]


def test_logits_and_targets_that_cannot_be_meant():
    calls = [call for loss in CAREFUL for call in (loss, loss.per_example)]
    for call, (given, message) in itertools.product(calls, BAD_LOGITS):
        with pytest.raises((TypeError, ValueError), match=message):
            call(given, label)
    for call, (given, message) in itertools.product(calls, BAD_TARGETS):
        with pytest.raises((TypeError, ValueError), match=message):
            call(logits, given)
    for loss in CAREFUL:
        with pytest.raises(ValueError, match=r"target: .* got 3$"):
            loss(logits[0], torch.tensor(3))
        for number, kind in ((156, torch.uint8), (65436, torch.uint16)):  # equal to -100 there
            with pytest.raises(ValueError, match=rf"target: .* got {number} at"):
                loss(logits, torch.tensor([0, number], dtype=kind))
        assert loss(logits, torch.tensor([0, -100])).isfinite()
    # Values are not read unless asked for.
    assert CrossEntropy()(torch.tensor([[nan, 0.0, 0.0]]), torch.tensor([0])).isnan()
    assert CrossEntropy()(logits, torch.full((2, 3), 0.5)).isfinite()


def test_a_base_of_log_probabilities_is_refused_and_one_of_ones_own_told_what_is_missing():
    for wrap in (SparseRegularized, Normalized, LogitClip):
        with pytest.raises(TypeError, match=r"base: nn\.NLLLoss .* CrossEntropy"):
            wrap(torch.nn.NLLLoss())

    class Empty(PointwiseLoss):
        pass

    class Mean(PointwiseLoss):
        def pointwise(self, log_probability: Tensor) -> Tensor:
            return -log_probability.mean()

    for wrap in (lambda loss: loss, SparseRegularized, Normalized):
        with pytest.raises(NotImplementedError, match=r"Empty: define pointwise"):
            wrap(Empty())(logits, label)
        with pytest.raises(ValueError, match=r"pointwise: .* Mean .* shape \(2.*got shape \(\)"):
            wrap(Mean())(logits, label)

    class Each(Loss):
        def label_values(self, outputs: Outputs) -> Tensor:
            return -outputs.log_probabilities.mean()

    for target in (label, logits.softmax(dim=1)):
        with pytest.raises(ValueError, match=r"label_values: .* Each .* got shape \(\)"):
            Each()(logits, target)


def test_settings_and_classes_that_do_not_fit_the_batch():
    outputs, labels = batch()
    share = torch.softmax(outputs, dim=1)
    for base, target, message in (
        (CrossEntropy(ignore_index=0), share, "ignore_index"),
        *(
            (CrossEntropy(weight=torch.ones(count)), target, "weight")
            for count, target in itertools.product((3, 9), (labels * 0, share))
        ),
    ):
        for loss in (base, SparseRegularized(base)):
            with pytest.raises(ValueError, match=message):
                loss(outputs, target)
    with pytest.raises(ValueError, match=r"logits: .* at least 2 classes"):
        Normalized(CrossEntropy())(torch.zeros(2, 1), torch.tensor([0, 0]))


def test_epochs_and_steps_are_counted_from_zero():
    loss = SparseRegularized(CrossEntropy())
    for epoch in (-1, nan, math.inf, "3"):
        with pytest.raises((ValueError, TypeError), match="epoch"):
            loss.set_epoch(epoch)
    for step, steps in ((1, 0), (-1, 10)):
        with pytest.raises(ValueError, match="epoch: expected"):
            loss.set_step(step, steps_per_epoch=steps)
