"""Losses go where `F.cross_entropy` goes: through torch's tracers, which know no values."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from losses.catalogue import batch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from labelproof import SparseRegularized, as_loss, parse_loss
from labelproof.losses.batch import is_plain

LOSSES = [
    *map(parse_loss, ("ce", "ce+sr", "10*nce+mae+sr", "nl(expected=true)", "bitempered+clip")),
    SparseRegularized(nn.CrossEntropyLoss()),
    as_loss(nn.CrossEntropyLoss()),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


class Network(nn.Module):
    def __init__(self, loss: nn.Module):
        super().__init__()
        self.layer, self.loss = nn.Linear(5, 5), loss

    def forward(self, inputs: Tensor, target: Tensor) -> Tensor:
        return self.loss(self.layer(inputs), target)


@every_loss
def test_fake_tensors_have_shapes(loss: nn.Module):
    logits, label = batch(dtype=torch.float32)
    with FakeTensorMode() as mode:
        assert loss(mode.from_tensor(logits), mode.from_tensor(label)).shape == ()


@every_loss
@pytest.mark.parametrize("mode", ["real", "symbolic"])
def test_operations_are_taken_down(loss: nn.Module, mode: Literal["real", "symbolic"]):
    logits, label = batch(dtype=torch.float32)
    other, other_label = batch(seed=1, dtype=torch.float32)
    graph = make_fx(loss, tracing_mode=mode)(logits, label)
    assert_close(graph(other, other_label), loss(other, other_label))


@every_loss
def test_a_network_with_its_loss_is_traced(loss: nn.Module):
    logits, label = batch(dtype=torch.float32)
    network = Network(loss)
    for module in (network, loss):
        assert torch.equal(symbolic_trace(module)(logits, label), module(logits, label))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own use
def test_a_written_gradient_is_not_for_dual_tensors():
    logits, label = batch()
    assert is_plain(logits, label)
    with forward_ad.dual_level():
        assert not is_plain(forward_ad.make_dual(logits, logits), label)
