from __future__ import annotations

import pytest
import torch

from labelproof.training.configuration import PRECISIONS
from labelproof.training.execution import TYPES, autocast, resolve_precision


def test_every_precision_has_numbers() -> None:
    assert {"auto", *TYPES} == set(PRECISIONS)


@pytest.mark.parametrize(
    ("device", "resolved"), [("cpu", "float32"), ("cuda", "bf16"), ("mps", "float32")]
)
def test_auto_depends_on_the_device_and_nothing_else_does(device: str, resolved: str) -> None:
    assert resolve_precision("auto", torch.device(device)) == resolved
    for precision in TYPES:
        assert resolve_precision(precision, torch.device(device)) == precision


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("precision", TYPES)
def test_matrices_are_multiplied_in_the_precision_asked_for(precision: str) -> None:
    matrix = torch.eye(16)
    with autocast(precision, matrix.device):
        assert (matrix @ matrix).dtype == TYPES[precision]
        assert not torch.is_autocast_enabled("cpu") or not torch.is_autocast_cache_enabled()
    assert (matrix @ matrix).dtype == torch.float32
