from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from labelproof.models import MLP


def test_a_row_and_an_image_of_the_same_numbers_are_the_same_input() -> None:
    first = MLP(3, (12,), generator=torch.Generator().manual_seed(0))
    second = MLP(3, (3, 2, 2), generator=torch.Generator().manual_seed(0))
    rows = torch.rand(4, 12, generator=torch.Generator().manual_seed(1))
    assert torch.equal(first(rows), second(rows.reshape(4, 3, 2, 2)))


def test_batch_normalisation_is_there_when_asked_for() -> None:
    for asked in (False, True):
        modules = MLP(3, (4,), batch_norm=asked).modules()
        assert sum(isinstance(module, nn.BatchNorm1d) for module in modules) == 2 * asked


def test_without_hidden_layers_it_is_a_linear_classifier() -> None:
    network = MLP(3, (4,), hidden=())
    rows = torch.rand(5, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(network(rows), rows @ network.head.weight.T + network.head.bias)
    assert torch.equal(network.features(rows), rows)


def test_it_says_what_it_takes() -> None:
    wrong: dict[str, list[Any]] = {
        "hidden": [256, (8, 0)],
        "batch_norm": [1],
        "input_shape": [64, (), (0,)],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=name):
                MLP(**{"num_classes": 3, "input_shape": (4,), name: value})
