"""Early-learning regularization against its formula in numpy, and what it does to wrong labels."""

from typing import Any

import numpy as np
import pytest
import torch
from reference import softmax

from labelproof import parse_loss
from labelproof.training.algorithms import Batch, EarlyLearning


def early_learning(loss: str = "ce", **options: Any) -> EarlyLearning:
    return EarlyLearning(parse_loss(loss), num_classes=6, num_examples=40, **options)


def drawn(seed: int, scale: float = 3.0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(16, 6, generator=generator)
    target = torch.randint(6, (16,), generator=generator)
    index = torch.randperm(40, generator=generator)[:16]
    return Batch((logits.requires_grad_(),), target, index)


@pytest.mark.parametrize(("beta", "weight"), [(0.7, 3.0), (0.0, 7.0), (1.0, 3.0)])
def test_it_is_the_formula(beta: float, weight: float):
    algorithm = early_learning(beta=beta, weight=weight)
    targets = np.zeros((40, 6))
    for seed in range(5):  # examples come again, so that targets move more than once
        batch = drawn(seed)
        logits, labels, index = (
            each.detach().numpy() for each in (batch.logits[0], batch.target, batch.index)
        )
        outputs = softmax(logits.astype(np.float64)).clip(1e-4, 1 - 1e-4)
        outputs_sum = outputs.sum(axis=1, keepdims=True)
        targets[index] = beta * targets[index] + (1 - beta) * outputs / outputs_sum
        overlap = (targets[index] * outputs).sum(axis=1)
        base = -np.log(softmax(logits.astype(np.float64))[np.arange(16), labels]).mean()
        penalty = np.log(1 - overlap).mean()
        (found,), parts = algorithm.objectives(batch)
        assert found.item() == pytest.approx(base + weight * penalty, rel=1e-5)
        assert parts["base"].item() == pytest.approx(base, rel=1e-5)
        assert parts["penalty"].item() == pytest.approx(penalty, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(algorithm.targets.numpy(), targets, rtol=1e-5, atol=1e-7)


def test_the_gradient_holds_the_targets_fixed_and_is_finite_for_certain_outputs():
    algorithm, batch = early_learning(), drawn(0)
    algorithm.targets.fill_(1 / 6)
    algorithm.objectives(batch).losses[0].backward()
    logits = batch.logits[0].detach().clone().requires_grad_()
    targets = algorithm.targets[batch.index]
    outputs = torch.softmax(logits, dim=1).clamp(1e-4, 1 - 1e-4)
    loss = algorithm.loss(logits, batch.target)
    (loss + 3 * (1 - (targets * outputs).sum(1)).log().mean()).backward()
    torch.testing.assert_close(batch.logits[0].grad, logits.grad)
    assert not algorithm.targets.requires_grad
    algorithm = early_learning(beta=0.0)
    for _ in range(3):
        batch = drawn(1, scale=1e4)
        (value,), _ = algorithm.objectives(batch)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(batch.logits[0].grad).all()


def test_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(ValueError, match=r"^processes:"):
        early_learning()
