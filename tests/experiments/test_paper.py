import json
import re
from typing import Any

import pytest
from shared_data import REPOSITORY

from labelproof.experiments.grids import GRIDS
from labelproof.experiments.presets import published

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


def test_every_number_stands_in_the_paper() -> None:
    text = shared("sparse-regularization.tex")
    numbers = set(re.findall(r"\d+\.\d+", text))
    for name, grid in PAPER.items():
        for dataset in grid.datasets:
            for method, cells in published(name, dataset).items():
                for column, (mean, _) in cells.items():
                    assert f"{mean:.2f}" in numbers, (name, dataset, method, column)


def test_numbers_are_percentages_with_a_spread_that_is_one() -> None:
    for name, grid in GRIDS.items():
        for dataset in grid.datasets:
            for cells in published(name, dataset).values():
                for mean, std in cells.values():
                    assert 0 < mean < 100
                    assert std is None or 0 <= std < 5


def test_what_the_paper_has_not_is_empty() -> None:
    assert published("sweep-p", "cifar10") == {}
    assert published("symmetric", "webvision") == {}
