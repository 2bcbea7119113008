"""The paper's settings, and the runs of its tables."""

import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from shared_data import REPOSITORY

from labelproof import SparseRegularized, format_loss, parse_loss
from labelproof.experiments import presets
from labelproof.experiments.grids import GRIDS, PlannedRun, choose_rows, plan, plan_all
from labelproof.experiments.presets import published
from labelproof.training.configuration import Configuration

NOISES = {
    "mnist": ("none", "symmetric:0.8"),
    "cifar10": ("symmetric:0.6:exact", "asymmetric-reference:0.4:exact", "human:worse"),
    "cifar100": ("symmetric:0.2:exact", "asymmetric-reference:0.4", "human:noisy"),
    "webvision": ("none",),
}
SETTINGS = [(dataset, noise) for dataset, noises in NOISES.items() for noise in noises]


def test_every_row_is_a_loss_that_trains() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(100, (8,), generator=generator)
    for setting in SETTINGS:
        for method, text in presets.paper_losses(*setting).items():
            loss = parse_loss(text)
            assert format_loss(parse_loss(format_loss(loss))) == format_loss(loss)
            logits = torch.randn(8, 100, generator=generator).requires_grad_()
            loss(logits, target).backward()
            assert logits.grad.isfinite().all(), (setting, method)
            assert logits.grad.abs().sum() > 0, (setting, method)
            if isinstance(loss, SparseRegularized):
                # The paper's rule: the weight starts below 1 / p.
                assert loss.weight < 1 / loss.p
                assert loss.clamp == 1e-7


def test_a_run_has_the_name_of_its_row() -> None:
    for dataset, noise in SETTINGS:
        methods = [presets.paper_losses(dataset, noise), presets.paper_algorithms(dataset, noise)]
        for method in itertools.chain(*methods):
            run = presets.paper_configuration(dataset, f" {method.upper()} ", noise=noise)
            assert presets.paper_method(run) == method
    other_lambda = presets.paper_configuration("cifar100", "CE+SR").loss
    other = Configuration("cifar100", noise="asymmetric:0.4", loss=other_lambda)
    assert presets.paper_method(other) == other.loss
    assert presets.paper_method(Configuration("photos", loss="ce")) == "ce"
    with pytest.raises(ValueError, match=r"^data: .* got 'svhn'"):
        presets.paper_configuration("svhn", "CE")


def test_numbers_are_those_published_for_the_noise() -> None:
    for dataset, method, noise, expected in [
        ("cifar10", "JS", "symmetric:0.4:exact", "js(pi=0.7)"),
        ("cifar10", "LogitClip", "asymmetric-reference:0.4:exact", "ce+clip(delta=2.5)"),
        ("cifar10", "CE_eps+MAE", "human:worse", "0.5*epsce(m=10000,clamp=1e-8)+2*mae"),
        ("cifar100", "CE_eps+MAE", "asymmetric:0.3", "0.005*epsce(m=100,clamp=1e-8)+2*mae"),
        ("webvision", "ANL-CE", "none", "20*nce+negce"),
        ("cifar10", "ELR", "symmetric:0.8:exact", "elr(beta=0.7,lambda=3)"),
        ("cifar10", "ELR", "asymmetric-reference:0.2:exact", "elr(beta=0.9,lambda=1)"),
        ("cifar100", "ELR", "human:noisy", "elr(beta=0.9,lambda=7)"),
    ]:
        run = presets.paper_configuration(dataset, method, noise=noise)
        assert (run.algorithm if method == "ELR" else run.loss) == expected
        assert (run.loss == "ce") == (method == "ELR")
        # No section for a noise has a method that the dataset's own section lacks.
        assert presets.paper_losses(dataset, noise).keys() == presets.paper_losses(dataset).keys()


def test_a_row_trains_in_its_own_way_by_its_name_alone() -> None:
    special = {}
    for dataset, noise in SETTINGS:
        configure = partial(presets.paper_configuration, dataset, noise=noise)
        for method in presets.paper_losses(dataset, noise):
            training = presets.paper_training(dataset, noise, method)
            if not training:
                continue
            special[dataset, method] = training
            row, plain = configure(method), configure("CE")
            others = {name for name in training if training[name] != getattr(plain, name)}
            assert set(row.differences(plain)) == {"loss", *others}
            assert not row.l1 or row.weight_decay == 0
            assert configure(row.loss).differences(plain) == ["loss"]
    assert len(special) == 16
    asked = presets.paper_configuration("mnist", "nlnl", epochs=3, schedule="constant")
    assert (asked.epochs, asked.schedule, asked.nesterov) == (3, "constant", True)


def test_negative_learning_adds_up_what_it_draws() -> None:
    for setting, classes, drawn in [("mnist", 10, 1), ("cifar100", 100, 110)]:
        # All probabilities are equal, so that it does not matter which labels are drawn.
        logits, target = torch.zeros(8, classes), torch.arange(8) % classes
        value = parse_loss(presets.paper_losses(setting)["NLNL"])(logits, target).item()
        assert value == pytest.approx(-drawn * math.log1p(-1 / classes), rel=1e-5)


NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
NAMES |= {"webvision": "WebVision-mini"}
PAPER = {name: grid for name, grid in GRIDS.items() if not grid.later}


def test_the_numbers_are_those_that_were_read_from_the_paper() -> None:
    path = REPOSITORY.parent / "shared" / "paper" / "tables.json"
    if not path.is_file():
        pytest.skip(f"{path} is not there to compare with")
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tables = {name: grid for name, grid in PAPER.items() if not name.startswith("sweep-")}
    assert tables.keys() <= read.keys()
    for name, grid in tables.items():
        assert set(read[name]) == {NAMES[dataset] for dataset in grid.datasets}
        for dataset in grid.datasets:
            found = {
                method: {place: {"mean": mean, "std": std} for place, (mean, std) in cells.items()}
                for method, cells in presets.published(name, dataset).items()
            }
            assert found == read[name][NAMES[dataset]]


def only(table: str, dataset: str, method: str, column: str) -> Configuration:
    (run,) = plan(table, dataset, methods=[method], columns=[column])
    return run.configuration


def test_every_cell_is_planned_once_with_the_papers_rows_and_columns() -> None:
    for table, dataset in ((name, each) for name, grid in GRIDS.items() for each in grid.datasets):
        runs = plan(table, dataset)
        grid = GRIDS[table]
        assert len(runs) == len(choose_rows(table, dataset)) * len(grid.columns_of(dataset))
        assert max(Counter(run[:4] for run in runs).values()) == 1
        assert max(Counter(run.configuration for run in runs).values()) == 1
        assert {run.configuration.data for run in runs} == {dataset}
        assert {run.configuration.precision for run in runs} == {"auto"}
        known = published(table, dataset)
        if grid.later:
            assert set(choose_rows(table, dataset)) & set(known)
        elif known:
            assert list(choose_rows(table, dataset)) == list(known)
            assert {tuple(cells) for cells in known.values()} == {grid.columns}
        else:
            assert table.startswith("sweep-")


def test_the_later_tables_train_in_the_papers_setting_and_in_the_publishers() -> None:
    for method in ("CE", "CE+SR", "APL"):
        paper = only("symmetric", "cifar10", method, "0.8")
        assert only("beyond", "cifar10", method, "sym-0.8") == paper
    # The same human labels are one run in both tables.
    worse = only("beyond", "cifar10", "CE+SR+l1", "worse")
    assert worse == only("human", "cifar10", "CE+SR+l1", "worse")
    assert (worse.noise, worse.network, worse.l1) == ("human:worse", "cnn8", 5e-5)
    theirs = only("human", "cifar100", "CE", "noisy-cifarn")
    assert (theirs.noise, theirs.network, theirs.epochs) == ("human:noisy", "resnet34", 100)
    assert (theirs.schedule, theirs.weight_decay, theirs.clip_norm) == ("step:60:0.1", 5e-4, 0)
    assert only("beyond", "cifar10", "elr", "clean").algorithm == "elr(beta=0.7,lambda=3)"
    # Tables of the paper are what "all" stands for.
    assert not {run.table for run in plan_all("cifar10", seeds=[1])} & {"beyond", "human"}
    chosen = plan_all("cifar100", seeds=[1], tables=["beyond", "human"], columns=["noisy"])
    assert {run.configuration.noise for run in chosen} == {"human:noisy"}
    assert len(chosen) == len(choose_rows("beyond", "cifar100"))


# The settings of the paper's experiments, as its supplement and its code give them.
SETTLED = ("network", "epochs", "batch_size", "learning_rate", "weight_decay", "augmentation")
SETTLED += ("schedule", "nesterov", "optimizer", "momentum", "clip_norm")
TRAINING = {
    "mnist": ("cnn4", 50, 128, 0.01, 1e-3, "none", "cosine", False),
    "cifar10": ("cnn8", 120, 128, 0.01, 1e-4, "crop:4,flip", "cosine", False),
    "cifar100": ("resnet34", 200, 128, 0.1, 1e-5, "crop:4,flip,rotation:20", "cosine", False),
    "webvision": (
        *("resnet50-imagenet", 250, 512, 0.4, 3e-5),
        *("resized-crop:224,flip,jitter:0.4:0.4:0.4:0.2", "exponential:0.97", True),
    ),
}


def test_training_is_the_papers() -> None:
    runs = [
        run
        for dataset in TRAINING
        for run in plan("webvision" if dataset == "webvision" else "symmetric", dataset)
    ]
    for run in runs:
        *expected, schedule, nesterov = TRAINING[run.dataset]
        if run.method == "NLNL" and run.dataset == "mnist":
            schedule, nesterov = "cosine:0.001", True
        found = [getattr(run.configuration, name) for name in SETTLED]
        assert found == [*expected, schedule, nesterov, "sgd", 0.9, 5]


def test_tables_that_share_cells_share_their_runs() -> None:
    for method in ("CE", "CE+SR"):
        for dataset in ("cifar10", "cifar100"):
            shared = only("symmetric", dataset, method, "0.6")
            assert only("comparison", dataset, method, "sym-0.6") == shared
    runs = plan_all("cifar10", seeds=[1, 2])
    assert len({run.configuration for run in runs}) == len(runs)
    tables = [name for name, grid in PAPER.items() if "cifar10" in grid.datasets]
    each = sum(len(plan(name, "cifar10")) for name in tables)
    # CE and CE+SR of the comparison are in the tables of noise, and two sweeps meet in one point.
    assert len(runs) == 2 * (each - 9)


def test_imbalanced_classes_are_trained_without_clip_and_rotation() -> None:
    for dataset, rows in (("cifar10", ["CE", "CE+SR"]), ("cifar100", ["CE+SR", "GCE"])):
        for run in plan("imbalance", dataset, methods=rows):
            assert run.configuration.clip_norm == 0
            assert run.configuration.augmentation == "crop:4,flip"
            assert run.configuration.imbalance.startswith(("long-tailed:", "step:"))
    # What the paper has for this row comes of the settings for noise.
    plain = only("imbalance", "cifar100", "CE", "lt-0.01")
    noisy = only("symmetric", "cifar100", "CE", "0.0")
    assert plain == replace(noisy, imbalance="long-tailed:0.01")
    normalized = {
        dataset: "normalize=true" in only("imbalance", dataset, "CE+SR", "lt-0.01").loss
        for dataset in ("cifar10", "cifar100")
    }
    assert normalized == {"cifar10": False, "cifar100": True}


def swept(run: PlannedRun) -> SparseRegularized:
    return parse_loss(run.configuration.loss)


def test_a_sweep_moves_one_number_and_holds_the_others() -> None:
    for sweep, attribute in (("lambda", "weight"), ("tau", "temperature"), ("p", "p")):
        for method in choose_rows(f"sweep-{sweep}", "cifar10"):
            runs = plan(f"sweep-{sweep}", "cifar10", methods=[method])
            for run in runs:
                assert getattr(swept(run), attribute) == float(run.column)
            for other in {"weight", "temperature", "p"} - {attribute}:
                assert len({getattr(swept(run), other) for run in runs}) == 1
            loss = swept(runs[0])
            before = loss.weight
            loss.set_epoch(100)
            assert loss.weight == before
            assert {run.configuration.noise for run in runs} == {"symmetric:0.6:exact"}
    (sharp,) = plan("sweep-lambda", "cifar10", methods=["FL+SR(tau=0.5)"], columns=["5"])
    assert swept(sharp).temperature == 0.5


def test_a_name_in_another_case_is_the_same_row() -> None:
    rows = choose_rows("symmetric", "mnist", ["phuber-ce", "GCE( q=0.5 )"])
    assert rows == ["PHuber-CE", "GCE( q=0.5 )"]
