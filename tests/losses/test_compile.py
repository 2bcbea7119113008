"""Every loss is one graph for the compiler, and a new epoch is not a new graph."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
import torch
from losses.catalogue import PLAIN, Case, batch, sparse
from torch import Tensor, nn
from torch.testing import assert_close

from labelproof import Loss, NegativeLearning, SparseRegularized, parse_loss

CROSS_ENTROPY = PLAIN[0]
REGULARIZED = [sparse(CROSS_ENTROPY, name) for name in ("sr(clamp)", "sr(vector)", "sr(raw)")]
# One of each base class.
FAMILIES = "ce rce(clamp=0.1) nl(expected=true) negce+epsce bitempered nfl+js+clip"


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def value_and_gradient(
    loss: Callable[..., Tensor], logits: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    value = loss(logits, target)
    (slope,) = torch.autograd.grad(value, logits)
    return value.detach(), slope


def compare(compiled: Callable[..., Tensor], loss: Loss, logits: Tensor, target: Tensor) -> None:
    ours = value_and_gradient(compiled, logits, target)
    assert_close(ours, value_and_gradient(loss, logits, target), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", FAMILIES.split())
def test_a_loss_is_one_graph(text: str):
    logits, label = batch(dtype=torch.float32)
    loss = parse_loss(text)
    compare(torch.compile(loss, fullgraph=True, backend="aot_eager"), loss, logits, label)


@pytest.mark.parametrize("case", REGULARIZED, ids=lambda case: case.name)
def test_a_new_epoch_is_not_a_new_graph(case: Case):
    logits, label = batch(dtype=torch.float32)
    loss = case.make()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    before = compiled(logits, label)
    compiled(logits.clone().requires_grad_(), label).backward()
    with torch.compiler.set_stance("fail_on_recompile"):
        for epoch in (0, 3, 40.5):
            loss.set_epoch(epoch)
            compare(compiled, loss, logits, label)
    constant = "raw" in case.name
    assert torch.equal(before, compiled(logits, label)) is constant


@pytest.mark.parametrize("target", ["ignored", "probabilities"])
def test_every_kind_of_target_is_one_graph(target: str):
    logits, label = batch(4, 5, 3, dtype=torch.float32)
    labels = {
        "ignored": torch.where(label == 1, -100, label),
        "probabilities": torch.softmax(batch(4, 5, 3, seed=1, dtype=torch.float32)[0], dim=1),
    }
    loss = parse_loss("10*nce+mae+sr", weight=torch.tensor([1.0, 2.0, 3.0, 0.5, 0.1]))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    compare(compiled, loss, logits, labels[target])


def test_parts_are_one_graph():
    logits, label = batch(dtype=torch.float32)
    loss = SparseRegularized(CROSS_ENTROPY.make())
    parts = torch.compile(loss.parts, fullgraph=True, backend="aot_eager")(logits, label)
    assert_close(tuple(parts), tuple(loss.parts(logits, label)))


def test_a_foreign_base_is_one_graph():
    logits, label = batch(dtype=torch.float32)
    loss = SparseRegularized(nn.CrossEntropyLoss(label_smoothing=0.1))
    compare(torch.compile(loss, fullgraph=True, backend="aot_eager"), loss, logits, label)


def test_drawing_a_label_takes_batches_of_any_size():
    drawn = NegativeLearning()  # of two classes only one can be drawn
    compiled = torch.compile(drawn, fullgraph=True, backend="aot_eager")
    for size in (6, 4, 3):
        compare(compiled, NegativeLearning(expected=True), *batch(size, 2, dtype=torch.float32))


@pytest.mark.parametrize("arguments", ["p={0},clamp={0}", "smoothing={0}"])
def test_another_hyperparameter_is_one_graph_too(arguments: str):
    logits, label = batch(dtype=torch.float32)
    for value in (0.1, 0.2):
        loss = parse_loss(f"ce+sr({arguments.format(value)})")
        compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="eager")
        compare(compiled, loss, logits, label)


@pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "c++", "cl"))), reason="needs a C++ compiler"
)
@pytest.mark.filterwarnings("ignore")  # the default backend's own imports warn
def test_the_default_backend_gives_the_eager_values():
    logits, label = batch(dtype=torch.float32)
    loss = parse_loss("10*nce+0.1*mae+sr(clamp=1e-7)")
    compiled = torch.compile(loss, fullgraph=True)
    compare(compiled, loss, logits, label)
    with torch.compiler.set_stance("fail_on_recompile"):
        loss.set_epoch(9)
        compare(compiled, loss, logits, label)
