"""Fit and train in Python do what the commands do, and resume likewise."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from trained import things

import labelproof
from labelproof.audit.folder import Audit
from labelproof.data import load_digits
from labelproof.training import Event

TINY = {"epochs": 3, "device": "cpu", "network": "mlp(hidden=8,depth=1)"}


def fruit() -> pd.DataFrame:
    return things(120, kinds=2, label="kind").set_index(pd.RangeIndex(100, 220))


def test_a_table_is_the_same_from_memory_and_from_a_file(tmp_path: Path) -> None:
    table = fruit()
    table.to_csv(tmp_path / "fruit.csv", index=False)
    run = labelproof.fit(table, "kind", **TINY)
    other = labelproof.fit(tmp_path / "fruit.csv", "kind", output=tmp_path / "run", **TINY)
    pd.testing.assert_frame_equal(run.metrics, other.metrics)
    inputs = table.drop(columns="kind")
    third = labelproof.fit((inputs, table["kind"]), audit=False, **TINY)
    predicted = run.predict(inputs)
    assert predicted.index.equals(table.index)
    pd.testing.assert_frame_equal(third.predict(inputs), predicted)
    # What has no place on the disk is remembered by the run.
    assert run.evaluate(split="train").n == 120
    assert run.audit().findings.given.tolist() == other.audit().findings.given.tolist()
    assert Audit.read(tmp_path / "run" / "audit").name == "fruit"


def test_images_are_learned_from_arrays_and_datasets() -> None:
    digits = load_digits()
    images, labels = digits.train.array[:200, 0], digits.train.labels[:200]
    run = labelproof.fit((images, labels), **TINY)
    assert run.description.class_names == tuple("0123456789")
    assert run.predict(images).shape == (200, 12)
    audit = run.audit()
    assert audit._repr_html_().count("<img") == min(len(audit.suspects), 10)
    assert labelproof.fit(digits, audit=False, **TINY).evaluate().n == 450
    with pytest.raises(ValueError, match="y: "):
        labelproof.fit((images, labels[:9]), **TINY)


def test_a_run_without_a_folder_takes_its_own_along() -> None:
    run = labelproof.fit(fruit(), "kind", audit=False, **TINY)
    folder = run.folder
    assert (folder / "record.json").exists()
    del run
    assert not folder.exists()


def test_a_configuration_is_trained_and_not_trained_again(tmp_path: Path) -> None:
    chosen = labelproof.Configuration("digits", network="mlp(hidden=8,depth=1)", epochs=2)
    run = labelproof.train(chosen, tmp_path / "run", device="cpu")
    lines: list[Event | str] = []
    again = labelproof.train(chosen, tmp_path / "run", device="cpu", progress=lines.append)
    assert run.record == again.record
    assert "finished" in str(lines[-1])
    in_memory = labelproof.train(chosen, data=load_digits(), device="cpu")
    pd.testing.assert_frame_equal(in_memory.metrics, run.metrics)


def test_progress_is_silent_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    labelproof.fit(fruit(), "kind", **TINY)
    assert capsys.readouterr() == ("", "")
    labelproof.fit(fruit(), "kind", progress=True, **TINY)
    said = capsys.readouterr().out
    assert "Data: 120 rows" in said
    assert "epoch 3 of 3" in said
