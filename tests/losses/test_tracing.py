"""Losses go where `F.cross_entropy` goes: through torch's tracers, which know no values."""

from __future__ import annotations

import torch
from losses.catalogue import batch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from labelproof import SparseRegularized, as_loss, parse_loss

LOSSES = [
    *map(parse_loss, ("ce", "ce+sr", "10*nce+mae+sr", "nl(expected=true)", "bitempered+clip")),
    SparseRegularized(nn.CrossEntropyLoss()),
    as_loss(nn.CrossEntropyLoss()),
]


def test_operations_are_taken_down():
    logits, label = batch(dtype=torch.float32)
    other, other_label = batch(seed=1, dtype=torch.float32)
    for loss in LOSSES:
        for mode in ("real", "symbolic"):
            graph = make_fx(loss, tracing_mode=mode)(logits, label)
            assert_close(graph(other, other_label), loss(other, other_label))
