"""What the papers prove about these losses."""

import math
from functools import partial

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from losses.catalogue import ELEMENTARY, PLAIN, batch
from torch import Tensor
from torch.testing import assert_close

import labelproof as lp
from labelproof.losses.divergence import tempered_log_softmax

steady = settings(deadline=None, derandomize=True, max_examples=10)
outputs = st.lists(st.floats(-30, 30), min_size=2, max_size=9).map(
    lambda row: torch.tensor([row], dtype=torch.float64)
)


def values(loss: lp.Loss, seed: int = 0) -> Tensor:
    logits, label = batch(50, 7, seed=seed, scale=3)
    return loss.per_example(logits, label)


@steady
@given(logits=outputs)
def test_a_normalized_loss_sums_to_one(logits: Tensor):
    classes = logits.shape[1]
    for text in ELEMENTARY:
        loss = lp.Normalized(lp.parse_loss(text))
        every = loss.per_example(logits.expand(classes, -1), torch.arange(classes))
        assert_close(float(every.sum()), 1.0, rtol=1e-9, atol=0, msg=text)
        assert (every >= 0).all(), text


LIMITS = [
    ("gce(q=1e-12)", "ce", 1e-9),
    ("gce(q=1)", "mae", 1e-12),
    ("fl(gamma=0)", "ce", 0),
    ("phuber(tau=1e12)", "ce", 0),
    ("agce(a=0.6,q=1)", "mae", 1e-12),
    ("agce(a=1e-6,q=0.7)", "gce(q=0.7)", 1e-3),
    ("aul(a=2,q=1)", "mae", 1e-12),
    ("amse(a=1)", "amse(a=1.0000001)", 1e-5),
    ("negfl(gamma=0)", "negce", 1e-12),
    ("epsce(m=0)", "ce", 1e-12),
    ("epsfl(m=0)", "fl", 1e-12),
    ("epsfl(m=9,gamma=0)", "epsce(m=9)", 1e-12),
    ("taylor(terms=1)", "mae", 1e-12),
    ("taylor(terms=2)", "mae+aul(a=1.001,q=2)", 1e-2),
    ("bitempered(t1=1,t2=1)", "ce", 1e-12),
    ("bitempered(t1=0.9999999,t2=1.0000001)", "ce", 1e-5),
    ("ce+clip(delta=1e6)", "ce", 1e-12),
]


def test_losses_meet_in_their_limits():
    for text, limit, tolerance in LIMITS:
        found, expected = values(lp.parse_loss(text)), values(lp.parse_loss(limit))
        assert_close(found, expected, rtol=tolerance, atol=1e-12 if tolerance else 0, msg=text)


def test_a_tempered_softmax_sums_to_one_and_has_a_second_derivative():
    logits, label = batch(2, 4)
    for t2 in (1.05, 1.2, 2, 4):
        for scale in (0.1, 5, 1e4):
            total = tempered_log_softmax(batch(4, 1000, scale=scale)[0], t2).exp().sum(dim=1)
            assert_close(total, torch.ones(4, dtype=torch.float64), rtol=1e-12, atol=0)
        cost = partial(lp.parse_loss(f"bitempered(t2={t2})"), target=label)
        assert torch.autograd.gradgradcheck(cost, [logits.requires_grad_()])


def test_sparse_regularization_switched_off_is_the_base():
    logits, label = batch()
    for case in PLAIN:
        base = case.make(reduction="none")
        off = lp.SparseRegularized(base, temperature=1, weight=0, normalize=False)
        assert_close(off(logits, label), base(logits, label), rtol=1e-14, atol=0)


@steady
@given(logits=outputs, p=st.floats(0.01, 1, exclude_max=True))
def test_norm_is_smallest_on_one_hot_outputs(logits: Tensor, p: float):
    num_classes = logits.shape[1]
    norm = float(lp.lp_norm(torch.log_softmax(logits, dim=1), p=p))
    assert 1 - 1e-12 <= norm <= num_classes ** (1 - p) * (1 + 1e-12)
    uniform = torch.full_like(logits, -math.log(num_classes))
    assert_close(float(lp.lp_norm(uniform, p=p)), num_classes ** (1 - p), rtol=1e-12, atol=0)
    one_hot = torch.full_like(logits, -math.inf)
    one_hot[0, num_classes // 2] = 0
    assert float(lp.lp_norm(one_hot, p=p)) == 1
    assert_close(float(lp.lp_norm(torch.log_softmax(logits, 1), p=1)), 1.0, rtol=1e-12, atol=0)
