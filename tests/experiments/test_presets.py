import pytest
import torch

from labelproof import SparseRegularized, format_loss, parse_loss
from labelproof.experiments.presets import PAPER_LOSSES, paper_loss

CELLS = [(setting, method) for setting, methods in PAPER_LOSSES.items() for method in methods]


@pytest.mark.parametrize(("setting", "method"), CELLS)
def test_every_row_of_the_paper_is_a_loss_that_trains(setting: str, method: str) -> None:
    loss = paper_loss(setting, method)
    assert format_loss(parse_loss(format_loss(loss))) == format_loss(loss)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 100, generator=generator).requires_grad_()
    target = torch.randint(100, (8,), generator=generator)
    loss(logits, target).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert logits.grad.abs().sum() > 0


def test_the_regulariser_is_the_papers() -> None:
    loss = paper_loss("mnist", "CE+SR")
    assert isinstance(loss, SparseRegularized)
    assert not loss.normalize
    weights = []
    for epoch in (0, 4, 5, 49):
        loss.set_epoch(epoch)
        weights.append(loss.weight)
    assert weights == [4, 4, 8, 4 * 2**9]
    # The paper's rule: the weight starts below 1 / p.
    for setting, method in CELLS:
        regularised = paper_loss(setting, method)
        if isinstance(regularised, SparseRegularized):
            assert regularised.weight < 1 / regularised.p
            assert regularised.clamp == 1e-7


def test_unknown_rows_are_named() -> None:
    with pytest.raises(ValueError, match="setting: expected one of mnist, cifar10"):
        paper_loss("svhn", "CE")
    with pytest.raises(ValueError, match="method: expected one of CE, FL"):
        paper_loss("mnist", "DivideMix")
