from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from labelproof.integrations.estimator_inputs import admit_images


def refusal(images: np.ndarray[Any, Any]) -> str:
    with pytest.raises(ValueError, match="X: expected images of uint8") as caught:
        admit_images(images)
    return str(caught.value)


def levels(low: float, high: float, dtype: Any) -> np.ndarray[Any, Any]:
    return np.linspace(low, high, 64).reshape(1, 8, 8).astype(dtype)


@pytest.mark.parametrize(
    ("images", "way"),
    [
        (levels(0, 499, np.uint16), "X / 499,"),
        (levels(0, 4095, np.float32), "X / 4095,"),
        (levels(-3, 2, np.float64), "(X - -3) / (2 - -3),"),
        (levels(-3, 300, np.int32), "(X - -3) / (300 - -3),"),
    ],
)
def test_a_cast_that_would_wrap_around_is_not_advised(
    images: np.ndarray[Any, Any], way: str
) -> None:
    message = refusal(images)
    assert "astype" not in message
    assert way in message


def test_only_whole_bytes_are_advised_to_be_brought_back() -> None:
    assert "astype" in refusal(levels(0, 252, np.float32).round())
    assert "astype" not in refusal(levels(0, 252.5, np.float32))
    assert "divided by 255" in refusal(levels(0, 252.5, np.float32))
