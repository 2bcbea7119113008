"""What a loss holds besides a checkpoint keeps its values wherever the loss is taken."""

from __future__ import annotations

import pytest
import torch
from losses.catalogue import batch
from torch import Tensor

from labelproof import CrossEntropy, Loss, SparseRegularized, parse_loss

CLASS_WEIGHT = [1.0, 2.0, 0.5, 0.25, 3.0]
VECTOR = [0.6, 0.2, 0.1, 0.1, 0.0]


def weighted() -> Loss:
    return parse_loss("ce+sr", weight=torch.tensor(CLASS_WEIGHT, device="cpu"))


def drawn_to_a_vector() -> Loss:
    return SparseRegularized(CrossEntropy(), vector=torch.tensor(VECTOR, device="cpu"))


def spoiled(tensor: Tensor) -> Tensor:
    """What `to_empty` gives at its worst."""
    return torch.full_like(tensor, float("nan"), device="cpu")


@pytest.mark.parametrize("make", [weighted, drawn_to_a_vector])
@pytest.mark.parametrize("through", ["cpu", "meta"])
def test_memory_that_a_checkpoint_would_fill_spoils_no_values(make, through: str):
    logits, label = batch(dtype=torch.float32)
    expected = make()(logits, label)
    loss = make().to(through)._apply(spoiled)
    assert torch.equal(loss(logits, label), expected)
    assert torch.equal(make().to(through).to_empty(device="cpu")(logits, label), expected)


def test_values_follow_to_another_precision():
    weight, vector = torch.tensor(CLASS_WEIGHT), torch.tensor(VECTOR)
    loss = SparseRegularized(CrossEntropy(weight=weight), vector=vector).double()
    held = (loss.class_weight, loss.base.class_weight, loss.vector)
    assert {tensor.dtype for tensor in held if isinstance(tensor, Tensor)} == {torch.float64}


@pytest.mark.parametrize("move", [False, True])
def test_made_or_moved_for_inference_it_can_be_trained_with(move: bool):
    with torch.inference_mode():
        loss = SparseRegularized(CrossEntropy())
        if move:
            loss.float()
    loss.set_epoch(3)
    assert float(loss._weight) == loss.weight == 1.2 * 1.03**3
    logits, label = batch()
    loss(logits.requires_grad_(), label).backward()
