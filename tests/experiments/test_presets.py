import math

import pytest
import torch

from labelproof import SparseRegularized, format_loss, parse_loss
from labelproof.experiments.presets import (
    NOISE_LOSSES,
    PAPER_LOSSES,
    PAPER_ROW_L1,
    PAPER_ROW_TRAINING,
    PAPER_TRAINING,
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
        "cifar10": ("symmetric:0.6:exact", "asymmetric-reference:0.4:exact", "asymmetric:0.4"),
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


@pytest.mark.parametrize(
    ("dataset", "method", "noise", "loss"),
    [
        ("cifar10", "JS", "symmetric:0.4:exact", "js(pi=0.7)"),
        ("cifar10", "JS", "symmetric:0.6:exact", "js(pi=0.9)"),
        ("cifar10", "LogitClip", "asymmetric-reference:0.4:exact", "ce+clip(delta=2.5)"),
        ("cifar10", "CE_eps+MAE", "human:worse", "0.5*epsce(m=10000,clamp=1e-8)+2*mae"),
        (
            *("cifar100", "ce_eps+mae", "asymmetric-reference:0.3"),
            "0.005*epsce(m=100,clamp=1e-8)+2*mae",
        ),
        ("webvision", "ANL-CE", "none", "20*nce+negce"),
    ],
)
def test_a_later_loss_has_the_numbers_published_for_the_noise(
    dataset: str, method: str, noise: str, loss: str
) -> None:
    run = paper_configuration(dataset, method, noise=noise)
    assert run.loss == loss
    assert paper_method(run).casefold() == method.casefold()


def test_what_depends_on_the_noise_is_a_row_and_a_loss() -> None:
    for setting, methods in NOISE_LOSSES.items():
        for method, losses in methods.items():
            assert method in PAPER_LOSSES[setting]
            for loss in losses.values():
                parse_loss(loss)
    for method, weights in PAPER_ROW_L1.items():
        for dataset in weights:
            assert any(method in PAPER_LOSSES[name] for name in PAPER_LOSSES if dataset in name)


def test_a_row_that_trains_differently_is_a_row_of_the_paper() -> None:
    for method, datasets in PAPER_ROW_TRAINING.items():
        for dataset, training in datasets.items():
            settings = [name for name in PAPER_LOSSES if name.split("-")[0] == dataset]
            assert all(method in PAPER_LOSSES[setting] for setting in settings)
            # What is not otherwise stands with the dataset alone.
            assert not training.items() & PAPER_TRAINING[dataset].items()


@pytest.mark.parametrize("dataset", ["mnist", "cifar10", "cifar100"])
def test_a_row_has_its_own_training_by_its_name_alone(dataset: str) -> None:
    rows = {name: paper_configuration(dataset, name) for name in ("NLNL", " nlnl ", "CE")}
    assert rows["NLNL"] == rows[" nlnl "]
    changed = {"loss", *PAPER_ROW_TRAINING["NLNL"].get(dataset, {})}
    assert set(rows["NLNL"].differences(rows["CE"])) == changed
    as_text = paper_configuration(dataset, rows["NLNL"].loss)
    assert as_text.differences(rows["CE"]) == ["loss"]
    asked = paper_configuration(dataset, "NLNL", epochs=3, schedule="constant")
    assert (asked.epochs, asked.schedule) == (3, "constant")


def test_nlnl_is_trained_as_its_published_rows_come_out() -> None:
    found = {
        dataset: (run.epochs, run.nesterov, run.schedule)
        for dataset in ("mnist", "cifar10", "cifar100")
        for run in [paper_configuration(dataset, "NLNL")]
    }
    assert found == {
        "mnist": (50, True, "cosine:0.001"),
        "cifar10": (120, False, "cosine"),
        "cifar100": (200, False, "cosine"),
    }


@pytest.mark.parametrize(
    ("setting", "classes", "drawn"),
    [
        ("mnist", 10, 1),
        ("cifar10", 10, 1),
        ("cifar100-symmetric", 100, 110),
        ("cifar100-asymmetric", 100, 110),
    ],
)
def test_negative_learning_adds_up_what_it_draws(setting: str, classes: int, drawn: int) -> None:
    # All probabilities are equal, so that it does not matter which labels are drawn.
    logits, target = torch.zeros(8, classes), torch.arange(8) % classes
    value = paper_loss(setting, "NLNL")(logits, target).item()
    assert value == pytest.approx(-drawn * math.log1p(-1 / classes), rel=1e-5)


def test_a_dataset_that_the_paper_has_not_is_named() -> None:
    with pytest.raises(ValueError, match=r"the paper has settings for mnist, .* got 'svhn'"):
        paper_configuration("svhn", "CE")


@pytest.mark.parametrize(
    ("dataset", "kind", "rate", "noise"),
    [
        ("mnist", "symmetric", 0.6, "symmetric:0.6"),
        ("cifar10", "symmetric", 0.6, "symmetric:0.6:exact"),
        ("mnist", "asymmetric", 0.4, "asymmetric:0.4"),
        ("cifar10", "asymmetric", 0.4, "asymmetric-reference:0.4:exact"),
        ("cifar10", "asymmetric", 0.0, "none"),
        ("cifar100", "asymmetric", 0.4, "asymmetric-reference:0.4"),
        ("cifar100", "symmetric", 0.0, "none"),
    ],
)
def test_noise_of_the_paper(dataset: str, kind: str, rate: float, noise: str) -> None:
    assert paper_noise(dataset, kind, rate) == noise
