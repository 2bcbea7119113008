"""Losses go where `F.cross_entropy` goes: through torch's tracers, which know no values."""

from __future__ import annotations

import torch
from losses.catalogue import batch
from torch import Tensor, nn
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from labelproof import SparseRegularized, as_loss, parse_loss

LOSSES = [
    *map(parse_loss, ("ce", "ce+sr", "10*nce+mae+sr", "nl(expected=true)", "bitempered+clip")),
    SparseRegularized(nn.CrossEntropyLoss()),
    as_loss(nn.CrossEntropyLoss()),
]


class Network(nn.Module):
    def __init__(self, loss: nn.Module):
        super().__init__()
        self.layer, self.loss = nn.Linear(5, 5), loss

    def forward(self, inputs: Tensor, target: Tensor) -> Tensor:
        return self.loss(self.layer(inputs), target)


def test_operations_are_taken_down():
    logits, label = batch(dtype=torch.float32)
    other, other_label = batch(seed=1, dtype=torch.float32)
    for loss in LOSSES:
        for mode in ("real", "symbolic"):
            graph = make_fx(loss, tracing_mode=mode)(logits, label)
            assert_close(graph(other, other_label), loss(other, other_label))


def test_a_network_with_its_loss_is_traced():
    logits, label = batch(dtype=torch.float32)
    for loss in LOSSES:
        for module in (Network(loss), loss):
            assert torch.equal(symbolic_trace(module)(logits, label), module(logits, label))
