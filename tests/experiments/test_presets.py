import json
import math
from functools import partial
from typing import Any

import pytest
import torch
from shared_data import REPOSITORY

from labelproof import SparseRegularized, format_loss, parse_loss
from labelproof.experiments.grids import GRIDS
from labelproof.experiments.presets import (
    paper_algorithms,
    paper_configuration,
    paper_losses,
    paper_method,
    published,
    row_training,
)
from labelproof.training.configuration import Configuration

NOISES = {
    "mnist": ("none", "symmetric:0.8"),
    "cifar10": ("symmetric:0.6:exact", "asymmetric-reference:0.4:exact", "human:worse"),
    "cifar100": ("symmetric:0.2:exact", "asymmetric-reference:0.4", "human:noisy"),
    "webvision": ("none",),
}


def test_every_row_is_a_loss_that_trains() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(100, (8,), generator=generator)
    settings = [(dataset, noise) for dataset, noises in NOISES.items() for noise in noises]
    for setting in settings:
        for method, text in paper_losses(*setting).items():
            loss = parse_loss(text)
            assert format_loss(parse_loss(format_loss(loss))) == format_loss(loss)
            logits = torch.randn(8, 100, generator=generator).requires_grad_()
            loss(logits, target).backward()
            assert logits.grad is not None
            assert logits.grad.isfinite().all(), (setting, method)
            assert logits.grad.abs().sum() > 0, (setting, method)
            if isinstance(loss, SparseRegularized):
                # The paper's rule: the weight starts below 1 / p.
                assert loss.weight < 1 / loss.p
                assert loss.clamp == 1e-7


def test_a_run_has_the_name_of_its_row() -> None:
    for dataset, noises in NOISES.items():
        for noise in noises:
            for method in (*paper_losses(dataset, noise), *paper_algorithms(dataset, noise)):
                run = paper_configuration(dataset, f" {method.upper()} ", noise=noise)
                assert paper_method(run) == method
    other_lambda = paper_configuration("cifar100", "CE+SR").loss
    other = Configuration("cifar100", noise="asymmetric:0.4", loss=other_lambda)
    assert paper_method(other) == other.loss
    assert paper_method(Configuration("photos", loss="ce")) == "ce"
    with pytest.raises(ValueError, match=r"^data: .* got 'svhn'"):
        paper_configuration("svhn", "CE")


def test_numbers_are_those_published_for_the_noise() -> None:
    for dataset, method, noise, expected in [
        ("cifar10", "JS", "symmetric:0.4:exact", "js(pi=0.7)"),
        ("cifar10", "JS", "symmetric:0.6:exact", "js(pi=0.9)"),
        ("cifar10", "LogitClip", "asymmetric-reference:0.4:exact", "ce+clip(delta=2.5)"),
        ("cifar10", "CE_eps+MAE", "human:worse", "0.5*epsce(m=10000,clamp=1e-8)+2*mae"),
        ("cifar100", "CE_eps+MAE", "asymmetric:0.3", "0.005*epsce(m=100,clamp=1e-8)+2*mae"),
        ("webvision", "ANL-CE", "none", "20*nce+negce"),
        ("cifar10", "ELR", "symmetric:0.8:exact", "elr(beta=0.7,lambda=3)"),
        ("cifar10", "ELR", "asymmetric-reference:0.2:exact", "elr(beta=0.9,lambda=1)"),
        ("cifar100", "ELR", "human:noisy", "elr(beta=0.9,lambda=7)"),
    ]:
        run = paper_configuration(dataset, method, noise=noise)
        assert (run.algorithm if method == "ELR" else run.loss) == expected
        assert (run.loss == "ce") == (method == "ELR")
        # No section for a noise has a method that the dataset's own section lacks.
        assert paper_losses(dataset, noise).keys() == paper_losses(dataset).keys()


def test_a_row_trains_in_its_own_way_by_its_name_alone() -> None:
    special = {}
    for dataset, noises in NOISES.items():
        for noise in noises:
            for method in paper_losses(dataset, noise):
                training = row_training(method, dataset, noise)
                if not training:
                    continue
                special[dataset, method] = training
                configure = partial(paper_configuration, dataset, noise=noise)
                row, plain = configure(method), configure("CE")
                expected = {
                    name for name, value in training.items() if value != getattr(plain, name)
                }
                assert set(row.differences(plain)) == {"loss", *expected}
                assert not row.l1 or row.weight_decay == 0
                as_text = configure(row.loss)
                assert as_text.differences(plain) == ["loss"]
    assert len(special) == 16
    asked = paper_configuration("mnist", "nlnl", epochs=3, schedule="constant")
    assert (asked.epochs, asked.schedule, asked.nesterov) == (3, "constant", True)


def test_negative_learning_adds_up_what_it_draws() -> None:
    for setting, classes, drawn in [("mnist", 10, 1), ("cifar100", 100, 110)]:
        # All probabilities are equal, so that it does not matter which labels are drawn.
        logits, target = torch.zeros(8, classes), torch.arange(8) % classes
        value = parse_loss(paper_losses(setting)["NLNL"])(logits, target).item()
        assert value == pytest.approx(-drawn * math.log1p(-1 / classes), rel=1e-5)


SHARED = REPOSITORY.parent / "shared" / "paper"
NAMES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "webvision": "WebVision-mini",
}
PAPER = {name: grid for name, grid in GRIDS.items() if not grid.later}


def shared(name: str) -> str:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{path} is not there to compare with")
    return path.read_text(encoding="utf-8")


def test_the_numbers_are_those_that_were_read_from_the_paper() -> None:
    read: dict[str, Any] = json.loads(shared("tables.json"))
    tables = {name: grid for name, grid in PAPER.items() if not name.startswith("sweep-")}
    assert tables.keys() <= read.keys()
    for name, grid in tables.items():
        assert set(read[name]) == {NAMES[dataset] for dataset in grid.datasets}
        for dataset in grid.datasets:
            found = {
                method: {
                    column: {"mean": mean, "std": std} for column, (mean, std) in cells.items()
                }
                for method, cells in published(name, dataset).items()
            }
            assert found == read[name][NAMES[dataset]]
