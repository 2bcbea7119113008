import pytest
import torch

from labelproof import SparseRegularized, format_loss, parse_loss
from labelproof.experiments.presets import (
    PAPER_LOSSES,
    paper_configuration,
    paper_loss,
    paper_method,
    paper_noise,
)
from labelproof.training.configuration import Configuration

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


def test_a_run_of_the_paper_has_the_name_of_its_row() -> None:
    for dataset, noises in {
        "mnist": ("none", "symmetric:0.8"),
        "cifar10": ("asymmetric:0.4",),
        "cifar100": ("symmetric:0.2:exact", "asymmetric-reference:0.4"),
        "webvision": ("none",),
    }.items():
        for noise in noises:
            setting = dataset
            if dataset == "cifar100":
                setting += "-asymmetric" if noise.startswith("asymmetric") else "-symmetric"
            for method in PAPER_LOSSES[setting]:
                assert paper_method(paper_configuration(dataset, method, noise=noise)) == method
    lambda0_of_the_other_noise = paper_configuration("cifar100", "CE+SR").loss
    other = Configuration("cifar100", noise="asymmetric:0.4", loss=lambda0_of_the_other_noise)
    assert paper_method(other) == other.loss
    both = paper_configuration("cifar10", "CE", algorithm="co-teaching")
    assert paper_method(both) == "Co-teaching"
    assert paper_method(Configuration("photos", loss="ce")) == "ce"


def test_a_dataset_that_the_paper_has_not_is_named() -> None:
    with pytest.raises(ValueError, match=r"the paper has settings for mnist, .* got 'svhn'"):
        paper_configuration("svhn", "CE")


@pytest.mark.parametrize(
    ("dataset", "kind", "rate", "noise"),
    [
        ("mnist", "symmetric", 0.6, "symmetric:0.6"),
        ("cifar10", "symmetric", 0.6, "symmetric:0.6:exact"),
        ("cifar10", "asymmetric", 0.4, "asymmetric:0.4"),
        ("cifar100", "asymmetric", 0.4, "asymmetric-reference:0.4"),
        ("cifar100", "symmetric", 0.0, "none"),
    ],
)
def test_noise_of_the_paper(dataset: str, kind: str, rate: float, noise: str) -> None:
    assert paper_noise(dataset, kind, rate) == noise
