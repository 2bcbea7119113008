"""Fit, train, audit and tune in Python do what the commands do, and resume likewise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_images import write_images
from trained import things

import labelproof
from labelproof.audit import Audit, audit_labels, open_samples
from labelproof.data import load_digits
from labelproof.data.notices import DataWarning
from labelproof.report.audit import as_json
from labelproof.report.audit_words import commands
from labelproof.training import Event
from labelproof.verbs.fit import FitPlan

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
    with pytest.raises(ValueError, match=r"^y: expected the index of X, .* y\.loc\[X\.index\]"):
        labelproof.fit((inputs, table["kind"][::-1]))
    predicted = run.predict(inputs)
    assert predicted.index.equals(table.index)
    pd.testing.assert_frame_equal(third.predict(inputs), predicted)
    # What has no place on the disk is remembered by the run.
    assert run.evaluate(split="train").n == 120
    assert run.audit().findings.given.tolist() == other.audit().findings.given.tolist()
    assert Audit.read(tmp_path / "run" / "audit").name == "fruit"
    # A run without a folder takes its own along.
    folder = third.folder
    assert (folder / "record.json").exists()
    del third
    assert not folder.exists()


def test_images_are_learned_from_arrays_and_datasets() -> None:
    digits = load_digits()
    images, labels = digits.train.array[:200, 0], digits.train.labels[:200]
    run = labelproof.fit((images, labels), **TINY)
    assert run.description.class_names == tuple("0123456789")
    assert run.predict(images).shape == (200, 12)
    with pytest.warns(DataWarning, match="agrees with only"):  # a single epoch
        audit = run.audit()
    assert audit._repr_html_().count("<img") == min(len(audit.suspects), 10)
    assert labelproof.fit(digits, audit=False, **TINY).evaluate().n == 450
    with pytest.raises(ValueError, match="no test split"):  # not what it was trained on
        run.evaluate()
    assert run.evaluate(split="train").learned_from_n == 200
    with pytest.raises(ValueError, match="labels: expected"):
        labelproof.fit((images, labels[:9]), **TINY)


def test_classes_that_cannot_be_learned_are_refused() -> None:
    for kinds, said in (
        (["fig"] * 120, "at least two classes, got only 'fig'"),
        ([f"fig {number}" for number in range(120)], r"120 labels .* of 120 samples"),
    ):
        for verb in (labelproof.fit, labelproof.audit, labelproof.tune):
            with pytest.raises(ValueError, match=said):
                verb((load_digits().train.array[:120], np.array(kinds)))


def test_labels_beside_their_rows_and_mistyped_options_are_told() -> None:
    table, labels = pd.DataFrame({"x": [1.0, 2.0, 3.0]}), pd.Series(["a", "b", "a"])
    for verb in (labelproof.fit, labelproof.audit):
        with pytest.raises(TypeError, match=r"^labels: .*fit\(\(X, y\)\)$"):
            verb(table, labels=labels)
        for wrong, meant in {"drops": "drop", "outputs": "output", "epoch": "epochs"}.items():
            with pytest.raises(ValueError, match=f"^unknown setting .*; did you mean '{meant}'"):
                verb(table, **{wrong: "x"})


def test_a_configuration_is_trained_and_not_trained_again(tmp_path: Path) -> None:
    chosen = labelproof.Configuration("digits", network="mlp(hidden=8,depth=1)", epochs=2)
    run = labelproof.train(chosen, tmp_path / "run", device="cpu")
    lines: list[Event | str] = []
    again = labelproof.train(chosen, tmp_path / "run", device="cpu", progress=lines.append)
    assert run.record == again.record
    assert "finished" in str(lines[-1])
    in_memory = labelproof.train(chosen, data=load_digits(), device="cpu")
    pd.testing.assert_frame_equal(in_memory.metrics, run.metrics)


def test_a_loss_may_be_given_as_an_object_and_a_configuration_not_as_a_text() -> None:
    loss = labelproof.GeneralizedCrossEntropy(0.5)
    small = {"network": "mlp(hidden=8,depth=1)", "epochs": 1, "device": "cpu", "audit": False}
    run = labelproof.fit("digits", loss=loss, **small)
    assert run.record.configuration["loss"] == "gce(q=0.5)"
    with pytest.raises(TypeError, match=r"^configuration: expected .*Configuration\('digits'\)"):
        labelproof.train("digits")  # type: ignore[arg-type]


def test_progress_is_silent_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    labelproof.fit(fruit(), "kind", **TINY)
    assert capsys.readouterr() == ("", "")
    labelproof.fit(fruit(), "kind", progress=True, **TINY)
    said = capsys.readouterr().out
    assert "Data: 120 rows" in said
    assert "epoch 3 of 3" in said


@pytest.fixture(scope="module")
def mislabelled() -> pd.DataFrame:
    """A table in which every tenth label is wrong."""
    table = things(200, kinds=2, label="kind")
    table.loc[::10, "kind"] = "kind 1"
    return table


def test_labels_of_a_table_are_audited_unseen(mislabelled: pd.DataFrame, tmp_path: Path) -> None:
    found = labelproof.audit(mislabelled, "kind", epochs=30, device="cpu", folds=2)
    assert set(found.suspects.index) == set(range(0, 200, 10))
    assert found.suspects.columns.tolist()[:4] == ["sample", "given", "suggested", "score"]
    assert found.noise_rate.low < 0.1 < found.noise_rate.high
    assert found.matrix.index.tolist() == ["kind 0", "kind 1"]
    assert "flagged" in found._repr_html_()
    assert "kind 1" in found.report(tmp_path / "page.html").read_text()
    found.write(tmp_path / "audit")
    assert Audit.read(tmp_path / "audit").suspects.round(4).equals(found.suspects.round(4))


def test_predictions_of_any_model_are_audited(mislabelled: pd.DataFrame, tmp_path: Path) -> None:
    given = (mislabelled["kind"] == "kind 1").to_numpy().astype(int)
    told = np.eye(2)[np.arange(200) % 2] * 0.9 + 0.05
    found = labelproof.audit(labels=given, probabilities=told)
    np.testing.assert_array_equal(found.suspects.index, audit_labels(told, given).suspects)
    for values in (given, given == 1, np.array(["no", "yes"], dtype=object)[given]):
        table = pd.DataFrame({"width": range(200), "kind": values}, index=range(300, 100, -1))
        suspects = labelproof.audit(table, "kind", probabilities=told).suspects
        alone = labelproof.audit(labels=table["kind"], probabilities=told).suspects
        assert alone.index.equals(suspects.index)
        labels = table["kind"].copy()
        assert (labels[suspects.index] == suspects["given"]).all()
        labels[suspects.index] = suspects["suggested"]
        assert labels.dtype == table["kind"].dtype
        assert pd.factorize(labels, sort=True)[0].tolist() == [0, 1] * 100
    kept = labelproof.audit(mislabelled, "kind", probabilities=told, output=tmp_path / "audit")
    assert kept.suspects.index.equals(found.suspects.index)
    assert (tmp_path / "audit" / "report.html").exists()
    with pytest.raises(ValueError, match="labels"):
        labelproof.audit(probabilities=told)
    with pytest.raises(ValueError, match="data"):
        labelproof.audit()


def test_warnings_are_of_the_line_that_calls(mislabelled: pd.DataFrame) -> None:
    with pytest.warns(DataWarning, match="constant") as told:
        FitPlan(mislabelled.assign(same=1), label="kind")
    assert [warning.filename for warning in told] == [__file__]


def test_an_audit_of_a_frame_is_joined_by_rows(mislabelled: pd.DataFrame, tmp_path: Path) -> None:
    table = mislabelled.assign(key=[f"0{n}" for n in range(200)]).iloc[40:]
    table.loc[45, "kind"] = None
    told = pd.DataFrame(np.eye(2)[table.index % 2] * 0.9 + 0.05, columns=["kind 0", "kind 1"])
    told = told.assign(key=table["key"].to_list()).query("key != '045'")[::-1]
    options: Any = {"probabilities": told, "id": "key", "output": tmp_path / "audit"}
    with pytest.warns(DataWarning, match="without a label") as told:
        found = labelproof.audit(table, "kind", **options)
    assert [warning.filename for warning in told] == [__file__]
    assert set(found.suspects.index) == set(range(40, 200, 10))
    assert found.suspects["id"].tolist() == table["key"].loc[found.suspects.index].tolist()
    page = (tmp_path / "audit" / "report.html").read_text()
    assert f'"columns":{as_json(table.columns.tolist())}' in page
    # A review shows the rows, although nothing but the audit's folder has them.
    samples = open_samples(Audit.read(tmp_path / "audit"))
    assert samples.kind == "rows"
    assert dict(samples.cells(0))["key"] == "040"
    assert "labelproof fit" not in str(commands(samples.audit, tmp_path))
    # Rows with equal labels in the index are told apart by their position.
    twice = table.assign(kind=mislabelled["kind"]).set_index(np.zeros(160, int))
    told = np.eye(2)[np.arange(160) % 2] * 0.9 + 0.05
    with pytest.warns(DataWarning, match="index repeats"):
        again = labelproof.audit(twice, "kind", probabilities=told)
    assert set(again.suspects.index) == set(range(0, 160, 10))


def test_a_fit_measures_on_held_out_labels() -> None:
    with pytest.raises(ValueError, match="validation: expected a share"):
        labelproof.fit("digits", validation=0)


def test_an_audit_of_a_frame_of_images_is_joined_by_their_paths(tmp_path: Path) -> None:
    files = [f"{number}.png" for number in range(40)]
    write_images(tmp_path, files)
    table = pd.DataFrame(
        {"path": [str(tmp_path / file) for file in files], "kind": ["a", "b"] * 20}
    )
    table = table.set_index(np.arange(140, 100, -1)).drop(index=130)
    table.loc[120, "path"] = str(tmp_path / "gone.png")
    settings: Any = {"network": "mlp(hidden=4,depth=1)", "epochs": 1, "folds": 2, "device": "cpu"}
    with pytest.warns(DataWarning):
        found = labelproof.audit(table, "kind", **settings)
    every = replace(found, findings=replace(found.findings, score=np.ones(38, np.float32)))
    assert len(every.suspects) == 38
    paths, named = table.loc[every.suspects.index, "path"], every.suspects["sample"]
    assert [Path(path).name for path in paths] == [Path(name).name for name in named]


def test_a_search_says_what_it_chose_and_is_of_its_data(tmp_path: Path) -> None:
    options: Any = {"trials": 3, "folds": 1, "epochs": 2, "device": "cpu"}
    options |= {"output": tmp_path / "search.json"}
    found = labelproof.tune(fruit(), "kind", **options)
    assert found.best is not None
    assert found.best.loss == found.trials["loss"].iloc[0]
    assert found.trials["state"].tolist() == ["complete"] * 3
    assert found.best.loss.split("(")[0] in found._repr_html_()
    with pytest.raises(ValueError, match="labels"):
        labelproof.tune(fruit().iloc[:60], "kind", **options)
