from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.noisy_logits import make, symmetric

from labelproof.audit import audit_logits, fit_noise_model
from labelproof.audit import logits as module
from labelproof.audit.logits import admit_logits

MADE = make(120, symmetric(3, 0.1))
Door = Callable[[Any, Any], Any]


def with_entry(value: float) -> np.ndarray:
    table = MADE.logits.astype(np.float64)
    table[7, 1] = value
    return table


def with_row(value: float) -> np.ndarray:
    table = MADE.logits.astype(np.float64)
    table[7] = value
    return table


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "one dimension": (MADE.logits[:, 0], MADE.given, r"^logits: .* got shape \(120,\)"),
    "one class": (MADE.logits[:, :1], MADE.given, r"^logits: .* at least two classes"),
    "no row": (MADE.logits[:0], MADE.given[:0], "^logits: expected at least one row"),
    "text": (MADE.logits.astype(str), MADE.given, "^logits: expected numbers, got <U"),
    "several lengths": ([[1.0, 2.0], [1.0]], [0, 1], "^logits: .* rows of different lengths"),
    "NaN": (with_entry(np.nan), MADE.given, "^logits: .* got nan in row 7, column 1"),
    "infinite": (with_entry(np.inf), MADE.given, "^logits: .* got inf in row 7, column 1"),
    "too large": (with_entry(1e300), MADE.given, r"^logits: .* got 1e\+300 in row 7, column 1"),
    "nothing is left": (with_row(-np.inf), MADE.given, "^logits: .* got -inf for all of row 7"),
    "fewer labels": (MADE.logits, MADE.given[:-1], "^labels: .* 120 rows of the logits, got 119"),
    "other labels": (MADE.logits, MADE.given + 1, "^labels: .* 3 columns of the logits, got 3"),
    "words": (MADE.logits, MADE.given.astype(str), r"^labels: .* numpy\.searchsorted"),
}


@pytest.mark.parametrize("door", [audit_logits, fit_noise_model])
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_logits_and_their_labels_is_refused(name: str, door: Door) -> None:
    logits, given, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        door(logits, given)


@pytest.mark.parametrize("temperature", [0, -1.0, np.nan, np.inf, 1e-300, "1"])
def test_what_nothing_can_be_divided_by_is_refused(temperature: Any) -> None:
    with pytest.raises(ValueError, match=r"^temperature: expected a number above 0, got "):
        fit_noise_model(MADE.logits, MADE.given, temperature=temperature)


def test_lists_floats_and_whole_numbers_come_to_the_same() -> None:
    whole = np.rint(MADE.logits).astype(np.int64)
    lowest = whole - whole.min()
    plain = fit_noise_model(lowest.astype(np.float32), MADE.given)
    for logits in (lowest.tolist(), lowest.astype(np.uint8), lowest.astype(np.float64)):
        fitted = fit_noise_model(logits, MADE.given.astype(float).tolist())
        np.testing.assert_array_equal(fitted.transition, plain.transition)
    score = audit_logits(lowest.astype(np.float32), MADE.given).score
    np.testing.assert_array_equal(audit_logits(lowest.tolist(), MADE.given.tolist()).score, score)


def test_classes_may_be_ruled_out() -> None:
    table = MADE.logits.copy()
    table[table < table.max(axis=1, keepdims=True) - 2] = -np.inf
    found = audit_logits(table, MADE.given)
    assert np.isfinite(found.score).all()
    assert np.isfinite(found.transition).all()
    assert np.isfinite([found.noise_rate.low, found.noise_rate.high]).all()


def test_a_mapped_file_stays_one_and_is_looked_through_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", 50)
    np.save(tmp_path / "logits.npy", MADE.logits)
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    assert admit_logits(mapped, MADE.given)[0] is mapped
    table = MADE.logits.copy()
    table[-1, 0] = np.nan
    with pytest.raises(ValueError, match="got nan in row 119, column 0"):
        admit_logits(table, MADE.given)
