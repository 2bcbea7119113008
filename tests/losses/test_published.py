"""The options that reproduce the field's published scripts do reproduce them, digit for digit."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import reference
import torch
import torch.nn.functional as F
from losses.catalogue import batch, value_and_gradient
from torch import Tensor
from torch.testing import assert_close

import labelproof as lp

Script = Callable[[Tensor, Tensor], Tensor]


def agree(loss: lp.Loss, script: Script, logits: Tensor, label: Tensor) -> None:
    value, slope = value_and_gradient(loss, logits, label)
    expected, expected_slope = value_and_gradient(script, logits, label)
    assert_close(value, expected, rtol=1e-9, atol=1e-12)
    assert_close(slope, expected_slope, rtol=1e-8, atol=1e-11)


def settings() -> Iterator[tuple[lp.Loss, Script]]:
    for q in (0.001, 0.01, 0.7, 1):
        loss = lp.GeneralizedCrossEntropy(q, clamp=1e-7, reduction="none")
        yield loss, lambda z, y, q=q: reference.published_generalized(z, y, q)
        if q in (0.01, 0.7):
            script = reference.published_normalized_generalized
            yield lp.Normalized(loss), lambda z, y, q=q, script=script: script(z, y, q)
    yield lp.ReverseCrossEntropy(clamp=1e-7, reduction="none"), reference.published_reverse
    for alpha, beta in ((0.01, 1), (0.1, 1), (6, 0.1)):
        loss = lp.SymmetricCrossEntropy(alpha, beta, clamp=1e-7, reduction="none")
        yield loss, lambda z, y, a=alpha, b=beta: reference.published_symmetric(z, y, a, b)
    for gamma in (0.5, 2):
        loss = lp.Focal(gamma, detach=True, reduction="none")
        yield loss, lambda z, y, g=gamma: reference.published_focal(z, y, g)
        yield (
            lp.Normalized(loss),
            lambda z, y, g=gamma: reference.published_normalized_focal(z, y, g),
        )


def test_losses_are_those_of_the_scripts():
    for scale in (1.0, 20.0):
        logits, label = batch(40, 10, scale=scale)
        clamped = (torch.softmax(logits, dim=1) < 1e-7).any()
        assert bool(clamped) is (scale > 5), "confident outputs are those the floor acts on"
        for loss, script in settings():
            agree(loss, script, logits, label)


BASES: list[tuple[Callable[[], lp.Loss], Script]] = [
    (lambda: lp.CrossEntropy(reduction="none"), partial(F.cross_entropy, reduction="none")),
    (
        lambda: lp.Focal(0.5, detach=True, reduction="none"),
        lambda logits, label: reference.published_focal(logits, label, 0.5),
    ),
    (
        lambda: lp.GeneralizedCrossEntropy(0.01, clamp=1e-7, reduction="none"),
        lambda logits, label: reference.published_generalized(logits, label, 0.01),
    ),
]
SETTINGS: list[tuple[float, float, float, bool]] = [  # of MNIST, CIFAR-10, CIFAR-100; sharper
    *((0.1, 0.1, 4, False), (0.5, 0.1, 1.2, True), (0.5, 0.01, 10, True), (0.05, 0.1, 1, True))
]


def test_sparse_regularization():
    logits, label = batch(40, 10, scale=4)
    for (temperature, p, weight, normalize), (make, script) in itertools.product(SETTINGS, BASES):
        how = {"temperature": temperature, "p": p, "weight": weight, "normalize": normalize}
        theirs = partial(reference.published_sparse, base=script, **how)
        agree(lp.SparseRegularized(make(), **how, clamp=1e-7), theirs, logits, label)
