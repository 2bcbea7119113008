"""Supervised learning: the loss itself, and parts that agree with it."""

from __future__ import annotations

import pytest
import torch

from labelproof import CrossEntropy, SparseRegularized, parse_loss
from labelproof.losses import Loss, as_loss
from labelproof.training.algorithms import Batch, Supervised


def random_batch(size: int = 33, classes: int = 7) -> Batch:
    generator = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn(size, classes, generator=generator)).requires_grad_()
    return Batch(
        (logits,), torch.randint(classes, (size,), generator=generator), torch.arange(size)
    )


def supervised(loss: Loss) -> Supervised:
    return Supervised(loss, num_classes=7, num_examples=33)


def test_the_objective_is_the_loss():
    batch = random_batch()
    certain = batch.logits[0].detach().softmax(1).numpy().max(axis=1) > 0.99
    assert 0 < certain.mean() < 1
    for text in ("ce", "10*nce+0.1*mae", "gce(q=0.5)", "fl(gamma=0.5)"):
        (value,), parts = supervised(parse_loss(text)).objectives(batch)
        assert value == parse_loss(text)(batch.logits[0], batch.target)
        assert parts == {"sparse_rate": pytest.approx(certain.mean())}


LOSSES = [
    "ce+sr",
    "ce+sr(tau=0.1,p=0.1,lambda0=4,rho=2,r=5,normalize=false)",
    "10*nce+mae+sr(p=0.01,clamp=1e-7)",
    "ce+sr(tau_rho=0.9)",
    "ce+sr(smoothing=0.1)",
]


@pytest.mark.parametrize("epoch", [0, 7, 45])
@pytest.mark.parametrize("text", LOSSES)
def test_the_parts_are_the_losss_own(text: str, epoch: int):
    loss = parse_loss(text)
    assert isinstance(loss, SparseRegularized)
    algorithm, batch = supervised(loss), random_batch()
    algorithm.set_epoch(epoch)
    (value,), parts = algorithm.objectives(batch)
    expected = loss.parts(batch.logits[0].detach(), batch.target)
    torch.testing.assert_close(value, loss(*batch.logits, batch.target))
    torch.testing.assert_close(parts["penalty"], expected.penalty)
    assert parts["sparse_rate"] == expected.sparse_rate
    # A difference is as exact as what it is a difference of.
    precision = 1e-6 * float(expected.total)
    torch.testing.assert_close(parts["base"], expected.base, atol=precision, rtol=1e-6)


def test_less_usual_losses_report_their_own_parts():
    batch = random_batch()
    for base in (
        CrossEntropy(weight=torch.linspace(0.1, 2, 7)),
        torch.nn.CrossEntropyLoss(label_smoothing=0.1),
        as_loss(torch.nn.CrossEntropyLoss(weight=torch.linspace(1, 2, 7))),
    ):
        loss = SparseRegularized(base)
        (value,), parts = supervised(loss).objectives(batch)
        expected = loss.parts(batch.logits[0], batch.target)
        torch.testing.assert_close(value, expected.total)
        for name in ("base", "penalty", "sparse_rate"):
            torch.testing.assert_close(parts[name], getattr(expected, name).detach())
