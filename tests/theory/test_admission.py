"""What the theory cannot be asked is refused by a message that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from labelproof import MeanAbsoluteError, theory

MAE = MeanAbsoluteError()
LOGITS = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
LABELS = torch.tensor([0, 2])


def terms(logits: Any = LOGITS, target: Any = LABELS) -> theory.GradientTerms:
    return theory.gradient_terms(logits, target, weight=1, p=0.1)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([0, 2], "target: expected a tensor, got list; torch.as_tensor"),
        (np.array([0, 2]), "target: expected a tensor, got ndarray"),
        (LABELS.float(), r"target: expected integer class indices, got torch.float32"),
        (LABELS.bool(), r"target: expected integer class indices, got torch.bool"),
        (torch.tensor([0, 1, 2]), r"target: expected shape \(N\) for logits .* got \(3,\)"),
        (torch.tensor([0, 3]), "target: expected class indices from 0 to 2, got 3 at index 1"),
        (torch.tensor([-100, 0]), "target: expected class indices .* got -100 at index 0"),
    ],
)
def test_labels_of_the_gradient(target: Any, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        terms(target=target)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (LOGITS.numpy(), "logits: expected a tensor, got ndarray"),
        (LOGITS.long(), "logits: expected a floating-point tensor, got torch.int64"),
        (LOGITS[0], r"logits: expected shape \(N, k\), got \(3,\)"),
        (LOGITS[:, :0], r"logits: expected shape \(N, k\), got \(2, 0\)"),
    ],
)
def test_logits_of_the_gradient(logits: Any, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        terms(logits=logits)


@pytest.mark.parametrize("outputs", [np.full((2, 3), 1 / 3), [[0.5, 0.5]]], ids=["array", "list"])
def test_outputs_are_tensors(outputs: Any):
    message = "outputs: expected a tensor, got .*; torch.as_tensor makes one"
    with pytest.raises(TypeError, match=message):
        theory.symmetry_gap(MAE, outputs)
    with pytest.raises(TypeError, match=message):
        theory.risk(MAE, outputs, LABELS)
    with pytest.raises(TypeError, match="vector: expected a tensor"):
        theory.loss_is_bounded(MAE, vector=outputs)


def test_a_loss_from_elsewhere_is_told_the_way_in():
    outputs: Any = (nn.CrossEntropyLoss(), torch.full((2, 3), 1 / 3))
    with pytest.raises(TypeError, match=r"loss: .* got CrossEntropyLoss; labelproof.as_loss"):
        theory.symmetry_gap(*outputs)


@pytest.mark.parametrize("label", [3, -1])
def test_labels_of_a_risk_are_classes(label: int):
    labels = torch.tensor([0, label])
    with pytest.raises(ValueError, match=f"labels: .* from 0 to 2, got {label} at index 1"):
        theory.risk(MAE, LOGITS.softmax(dim=1), labels)
