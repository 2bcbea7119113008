"""Tables without a network: fit, predict, evaluate, audit and export, resumed and refused."""

import pickle
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from planted import Planted
from safetensors.torch import save_file

import labelproof
from labelproof.audit.folder import Audit
from labelproof.data import load_dataset
from labelproof.data.notices import DataWarning
from labelproof.models.blend import Blend
from labelproof.tabular import candidates
from labelproof.tabular.run import blend_configuration
from labelproof.training import run_folder
from labelproof.training.files import write_text

WRONG = np.arange(0, 240, 8)


def plants() -> pd.DataFrame:
    """Three kinds by two measurements and a code, an eighth of them labelled as the next."""
    generator, kinds = np.random.default_rng(0), np.arange(240) % 3
    sizes = generator.normal(scale=0.4, size=(240, 2)) + np.stack([2 * kinds, -kinds], axis=1)
    given = kinds.copy()
    given[WRONG] = (given[WRONG] + 1) % 3
    table = pd.DataFrame(sizes, columns=["height", "width"])
    codes = np.array(["1.0", "2.0", None])[generator.integers(3, size=240)]
    codes[1] = "unknown"
    return table.assign(code=codes, kind=np.array(["fig", "oak", "pear"])[given])


@pytest.fixture(scope="module", autouse=True)
def few_trees() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "TREES", 10)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a run on it beside it."""
    folder = tmp_path_factory.mktemp("plants")
    plants().to_csv(folder / "plants.csv", index=False)
    labelproof.fit(folder / "plants.csv", "kind", output=folder / "run")
    return folder


def test_a_frame_and_a_file_come_to_the_same(made: Path) -> None:
    table = plants()
    run, loaded = labelproof.fit(table, "kind"), labelproof.load_run(made / "run")
    assert isinstance(loaded.network, Blend)
    assert "network: blend of" in repr(loaded)
    assert "epochs" not in repr(loaded)
    inputs = table.drop(columns="kind")
    predicted = loaded.predict(inputs)
    pd.testing.assert_frame_equal(run.predict(inputs), predicted)
    from_file = loaded.predict(made / "plants.csv").reset_index(drop=True)
    pd.testing.assert_frame_equal(from_file, predicted)
    table[2:].to_csv(made / "numbers.csv", index=False)  # codes that are all numbers
    from_file = loaded.predict(made / "numbers.csv").reset_index(drop=True)
    pd.testing.assert_frame_equal(from_file, predicted[2:].reset_index(drop=True))
    truth = np.array(["fig", "oak", "pear"])[np.arange(240) % 3]
    assert (predicted["label"] == truth).mean() > 0.98
    assert loaded.evaluate(table.assign(kind=truth)).accuracy > 98
    assert loaded.metrics["validation_accuracy"].iloc[0] > 80
    # Whoever names a network or its training is given one.
    network = labelproof.fit(table, "kind", epochs=2, audit=False, device="cpu")
    assert network.configuration.network.startswith("mlp")


def test_labels_are_judged_by_classifiers_that_have_not_seen_them(made: Path) -> None:
    kept = Audit.read(made / "run" / "audit")
    by_id: Any = {"id": "height"}
    audits = [labelproof.load_run(made / "run").audit(), labelproof.audit(made / "run", **by_id)]
    audits.append(labelproof.audit(plants(), "kind", **by_id))
    with pytest.warns(DataWarning, match="constant"):
        run = labelproof.fit(plants().assign(same=1), "kind", audit=False)
    audits = [run.audit(), *audits]  # does not warn again
    for audit in audits[2:]:
        heights = plants()["height"].iloc[audit.findings.suspects]
        np.testing.assert_allclose(audit.suspects["id"].astype(float), heights)
    with pytest.raises(ValueError, match=r"--id: .* did you mean 'height'"):
        labelproof.audit(plants(), "kind", id="hight")
    for audit in [kept, *audits]:
        assert audit.findings.suspects.tolist() == kept.findings.suspects.tolist()
        assert not audit.seen
    assert set(WRONG) <= set(kept.suspects.index)
    assert len(kept.suspects) <= len(WRONG) + 5
    assert kept.noise_rate.low < 1 / 8 < kept.noise_rate.high
    # An audit of the run takes the place of the one that is there: nothing was trained for long.
    labelproof.audit(made / "run", output=made / "run" / "audit")
    assert "classifier that had not seen it" in (made / "run/audit/report.html").read_text()


def test_settings_of_the_data_are_those_of_a_blend_too() -> None:
    table = plants()
    table.loc[table.index % 3 == 0, "kind"] = table["kind"].where(table.index % 9 > 0, "oak")
    table["batch"] = np.arange(240) // 3
    options: Any = {"group": "batch", "audit": False}
    run = labelproof.fit(table, "kind", balanced=True, noise="symmetric:0.2", seed=3, **options)
    assert run.blended
    assert run.record is not None
    assert 0.1 < run.record.noise_rate < 0.3
    assert run.configuration.class_weight == "balanced"
    other = labelproof.fit(table, "kind", **options)
    assert not np.allclose(run.predict(table)["probability"], other.predict(table)["probability"])


def test_a_few_rows_are_left_to_the_network() -> None:
    for rows, blended in ((24, False), (60, True)):
        few = load_dataset(plants().iloc[:rows], label="kind")
        assert (blend_configuration(few, "few", {"seed": 1}) is not None) is blended
    # Copies are on one side of every cut, so that many of a few rows are few too.
    twins = pd.DataFrame({"code": list("AB") * 120, "kind": list("xyyxyx") * 40})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        few = load_dataset(twins, label="kind")
    with pytest.warns(DataWarning, match="table: only 2 rows that differ .*network"):
        assert blend_configuration(few, "few", {"seed": 1}) is None
    assert blend_configuration(few, "few", {"epochs": 3}) is None  # a network, as requested
    with pytest.raises(ValueError, match="network"):
        labelproof.fit(plants().iloc[:24], "kind", network="blend")
    with pytest.raises(ValueError, match="group"):
        labelproof.fit(plants().assign(batch=1), "kind", group="batch")


def test_it_is_exported_as_any_network(made: Path, tmp_path: Path) -> None:
    run = labelproof.load_run(made / "run")
    rows = run.columns.encode(plants(), place="table")
    session = onnxruntime.InferenceSession(run.export(tmp_path / "plants.onnx"))
    (logits,) = session.run(None, {"rows": rows})
    np.testing.assert_allclose(np.exp(np.asarray(logits)), run.probabilities(rows), atol=1e-5)


def test_texts_are_learned_by_their_terms(tmp_path: Path) -> None:
    generator, kinds = np.random.default_rng(0), np.arange(400) % 2
    # No word tells the class: their order does.
    noise = [" ".join(f"w{word}" for word in generator.integers(300, size=9)) for _ in kinds]
    pairs = np.array([["not good", "good not"], ["不好", "好不"]])
    texts = [f"{words} {pairs[row % 4 // 2, row % 2]}" for row, words in enumerate(noise)]
    texts[7] = texts[3].upper()
    given = np.where(np.arange(400) % 10 == 0, 1 - kinds, kinds)
    table = pd.DataFrame({"size": generator.normal(size=400), "review": texts, "kind": given})
    table.loc[7, "size"] = table.loc[3, "size"]
    run = labelproof.fit(table[:300], "kind", output=tmp_path / "run")
    assert run.evaluate(table[300:].assign(kind=kinds[300:].astype(str))).accuracy > 90
    loaded = labelproof.load_run(tmp_path / "run")
    rows = loaded.columns.encode(table[300:])
    np.testing.assert_array_equal(loaded.probabilities(rows), run.probabilities(rows))
    session = onnxruntime.InferenceSession(loaded.export(tmp_path / "texts.onnx"))
    (logits,) = session.run(None, {"rows": rows})
    np.testing.assert_allclose(np.exp(np.asarray(logits)), run.probabilities(rows), atol=1e-5)
    audit = Audit.read(tmp_path / "run" / "audit")
    assert (audit.findings.suspects % 10 == 0).mean() > 0.6
    assert (audit.duplicate_of[3], audit.duplicate_of[7]) == (7, 3)
    network = labelproof.fit(table[:300], "kind", epochs=1, audit=False, device="cpu")
    changed = rows.copy()
    changed[:, loaded.columns.ids] = 7
    np.testing.assert_array_equal(network.probabilities(rows), network.probabilities(changed))


def test_files_that_are_not_a_blend_are_refused_and_run_nothing(made: Path, tmp_path: Path) -> None:
    run, proof = tmp_path / "run", tmp_path / "executed"
    shutil.copytree(made / "run", run)
    (checkpoint,) = (run / "checkpoint").iterdir()
    whole = checkpoint.read_bytes()
    pickled = pickle.dumps(Planted(proof))
    save_file(labelproof.load_run(run).network.state_dict(), str(tmp_path / "without-notes"))
    for content in (pickled, whole[:-100], (tmp_path / "without-notes").read_bytes(), b""):
        checkpoint.write_bytes(content)
        with pytest.raises(ValueError, match="safetensors"):
            labelproof.load_run(run)
    checkpoint.write_bytes(whole)
    # One of other rows than the folder tells of.
    text = (run / "model.json").read_text()
    (run / "model.json").write_text(text.replace('"fig",', '"fig", "birch",'))
    with pytest.raises(ValueError, match="weights do not fit"):
        labelproof.load_run(run)
    (run / "model.json").write_text(text)
    (run / "predictions.npz").write_bytes(pickled)
    with pytest.raises(ValueError, match=r"predictions\.npz"):
        labelproof.load_run(run).audit()
    assert not proof.exists()


def test_killed_it_starts_anew(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(path: Path, *arguments: Any, **options: Any) -> None:
        if path.name == "record.json":
            raise KeyboardInterrupt
        write_text(path, *arguments, **options)

    shutil.copy(made / "plants.csv", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(run_folder.files, "write_text", kill)
        with pytest.raises(KeyboardInterrupt):
            labelproof.fit(tmp_path / "plants.csv", "kind", output=tmp_path / "run")
    assert (tmp_path / "run" / "model.json").exists()
    assert not (tmp_path / "run" / "record.json").exists()
    run = labelproof.fit(tmp_path / "plants.csv", "kind", output=tmp_path / "run")
    whole = labelproof.load_run(made / "run")
    pd.testing.assert_frame_equal(run.predict(plants()), whole.predict(plants()))
