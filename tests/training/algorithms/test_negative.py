"""From negative to positive learning, against a plain loop in each of the three stages."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from labelproof import CrossEntropy, parse_loss
from labelproof.losses import Loss, draw_complementary
from labelproof.training.algorithms import Batch, NegativeToPositive

CLASSES = 5
STAGES = {"negative": 0, "selective": 1, "positive": 2}


def stages(loss: Loss | None = None, **options: Any) -> NegativeToPositive:
    options = {"negative_epochs": 1, "selective_epochs": 1} | options
    return NegativeToPositive(
        CrossEntropy() if loss is None else loss, num_classes=CLASSES, num_examples=64, **options
    )


def random_batch(size: int = 64) -> Batch:
    generator = torch.Generator().manual_seed(0)
    logits = (2 * torch.randn(size, CLASSES, generator=generator)).requires_grad_()
    target = torch.randint(CLASSES, (size,), generator=generator)
    return Batch((logits,), target, torch.arange(size))


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("stage", STAGES)
def test_it_is_the_plain_loop(stage: str, samples: int):
    algorithm, batch = stages(samples=samples), random_batch()
    algorithm.set_epoch(STAGES[stage])
    algorithm.use_generator(torch.Generator().manual_seed(5))
    (value,), parts = algorithm.objectives(batch)
    again = torch.Generator().manual_seed(5)
    drawn = draw_complementary(batch.target, CLASSES, samples=samples, generator=again).numpy()
    probabilities = batch.logits[0].detach().double().softmax(1).numpy()
    costs = []
    for output, label, others in zip(probabilities, batch.target.numpy(), drawn, strict=True):
        negative = np.mean([-math.log(1 - output[other]) for other in others])
        if stage == "negative" or (stage == "selective" and output[label] > 1 / CLASSES):
            costs.append(negative)
        elif stage == "positive" and output[label] > 0.5:
            costs.append(-math.log(output[label]))
    assert value.item() == pytest.approx(np.mean(costs), rel=1e-5)
    assert parts["selected"] == len(costs) / 64
    assert len(costs) == 64 if stage == "negative" else 0 < len(costs) < 64


@pytest.mark.parametrize("stage", STAGES)
def test_extreme_logits_have_finite_gradients_and_no_believed_label_has_none(stage: str):
    algorithm, batch = stages(), random_batch()
    algorithm.set_epoch(STAGES[stage])
    for scale in (1e2, 1e30):
        logits = (scale * batch.logits[0].detach()).requires_grad_()
        algorithm.objectives(Batch((logits,), batch.target, batch.index)).losses[0].backward()
        assert torch.isfinite(logits.grad).all()
    if stage != "negative":
        logits = (9 * torch.eye(CLASSES)[:1].repeat(8, 1)).requires_grad_()
        target = torch.arange(8) % (CLASSES - 1) + 1
        (value,), parts = algorithm.objectives(Batch((logits,), target, torch.arange(8)))
        value.backward()
        assert (value, parts["selected"]) == (0, 0)
        assert not logits.grad.any()


def test_the_stages():
    for negative, selective, epochs, expected in (
        (2, 1, None, "nnsppp"),
        (0, 2, None, "sspppp"),
        (0, 0, None, "pppppp"),
        (6, 0, None, "nnnnnn"),
        (0.5, 0.25, 8, "nnnnsspp"),
        (0.3, 0.3, 5, "nnspp"),
        (0.7, 0.2, 10, "nnnnnnnssp"),
        (3, 0.25, 6, "nnnspp"),
    ):
        algorithm = stages(negative_epochs=negative, selective_epochs=selective, epochs=epochs)
        found = ""
        for epoch in range(len(expected)):
            algorithm.set_epoch(epoch)
            found += algorithm.stage[0]
        assert found == expected


def test_the_last_stage_has_the_loss_that_was_given():
    algorithm, batch = stages(parse_loss("gce+sr(lambda0=1,rho=2)")), random_batch()
    algorithm.set_epoch(3)
    assert algorithm.loss.weight == 8
    (logits,) = batch.logits
    believed = logits.softmax(1).gather(1, batch.target[:, None])[:, 0] > 0.5
    expected = algorithm.loss.per_example(logits, batch.target)[believed].mean()
    torch.testing.assert_close(algorithm.objectives(batch).losses[0], expected)
