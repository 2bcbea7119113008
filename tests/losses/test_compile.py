"""Every loss is one graph for the compiler, and a new epoch is not a new graph."""

import shutil
from collections.abc import Callable

import pytest
import torch
from losses.catalogue import PLAIN, batch, sparse, value_and_gradient
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing import assert_close

from labelproof import Loss, NegativeLearning, SparseRegularized, as_loss, parse_loss

CROSS_ENTROPY = PLAIN[0]
# One of each base class; a sum is one graph if each of its parts is.
FAMILIES = "rce(clamp=0.1)+nl(expected=true)+negce bitempered nfl+epsce+clip"


@pytest.fixture(autouse=True)
def fresh_compiler() -> None:
    torch.compiler.reset()


def compiled(loss: Loss, backend: str = "eager") -> Callable[..., Tensor]:
    return torch.compile(loss, fullgraph=True, backend=backend)


def compare(found: Callable[..., Tensor], loss: Loss, logits: Tensor, target: Tensor) -> None:
    ours = value_and_gradient(found, logits, target)
    assert_close(ours, value_and_gradient(loss, logits, target), rtol=1e-5, atol=1e-6)


def test_a_loss_is_one_graph():
    logits, label = batch(dtype=torch.float32)
    for loss in (
        *map(parse_loss, FAMILIES.split()),
        SparseRegularized(nn.CrossEntropyLoss(label_smoothing=0.1)),
    ):
        compare(compiled(loss), loss, logits, label)


def test_a_new_epoch_is_not_a_new_graph():
    logits, label = batch(dtype=torch.float32)
    for variant, constant in (("sr(vector)", False), ("sr(raw)", True)):
        loss = sparse(CROSS_ENTROPY, variant).make()
        graph = compiled(loss, "aot_eager")
        before = graph(logits, label)
        graph(logits.clone().requires_grad_(), label).backward()
        with torch.compiler.set_stance("fail_on_recompile"):
            for epoch in (0, 3, 40.5):
                loss.set_epoch(epoch)
                compare(graph, loss, logits, label)
        assert torch.equal(before, graph(logits, label)) is constant


def test_every_kind_of_target_the_parts_and_drawing_for_any_batch_are_one_graph():
    logits, label = batch(4, 5, 3, dtype=torch.float32)
    share = torch.softmax(batch(4, 5, 3, seed=1, dtype=torch.float32)[0], dim=1)
    loss = parse_loss("nce+sr", weight=torch.tensor([1.0, 2.0, 3.0, 0.5, 0.1]))
    graph = compiled(loss)
    for target in (torch.where(label == 1, -100, label), share):
        compare(graph, loss, logits, target)
    loss = SparseRegularized(CROSS_ENTROPY.make())
    parts = torch.compile(loss.parts, fullgraph=True, backend="eager")(logits, label)
    assert_close(tuple(parts), tuple(loss.parts(logits, label)))
    graph = compiled(NegativeLearning())  # of two classes only one can be drawn
    for size in (6, 4, 3):
        compare(graph, NegativeLearning(expected=True), *batch(size, 2, dtype=torch.float32))


@pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "c++", "cl"))), reason="needs a C++ compiler"
)
@pytest.mark.filterwarnings("ignore")  # the default backend's own imports warn
def test_the_default_backend_gives_the_eager_values():
    logits, label = batch(dtype=torch.float32)
    loss = parse_loss("ce+sr(clamp=1e-7)")
    graph = torch.compile(loss, fullgraph=True)
    compare(graph, loss, logits, label)
    with torch.compiler.set_stance("fail_on_recompile"):
        loss.set_epoch(9)
        compare(graph, loss, logits, label)


def test_operations_are_taken_down():
    logits, label = batch(dtype=torch.float32)
    other, other_label = batch(seed=1, dtype=torch.float32)
    ours = map(parse_loss, ("ce", "nce+mae+sr", "nl(expected=true)", "bitempered+clip"))
    for loss in (*ours, as_loss(nn.CrossEntropyLoss())):
        graph = make_fx(loss, tracing_mode="symbolic")(logits, label)
        assert_close(graph(other, other_label), loss(other, other_label))
