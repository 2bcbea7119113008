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


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"hidden": 256}, TypeError, r"hidden: expected widths such as \(256, 256\), got 256"),
        ({"hidden": (8, 0)}, ValueError, "hidden: expected a whole number of at least 1, got 0"),
        ({"batch_norm": 1}, TypeError, "batch_norm: expected true or false"),
        ({"input_shape": 64}, TypeError, "input_shape: expected the sizes of one input"),
        ({"input_shape": ()}, TypeError, "input_shape: expected the sizes of one input"),
        ({"input_shape": (0,)}, ValueError, "input_shape: expected a whole number of at least 1"),
    ],
)
def test_it_says_what_it_takes(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        MLP(**{"num_classes": 3, "input_shape": (4,), **options})
