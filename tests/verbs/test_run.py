"""A run in Python: predictions, accuracy and metrics, and no code that the caller does not name."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_images import write_images
from trained import labelproof as command
from trained import train_digits, write_things

import labelproof
from labelproof.data import load_digits
from labelproof.data.notices import DataWarning


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> labelproof.Run:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert train_digits(folder, "--network", "mlp(hidden=32,depth=1)", epochs=3).exit_code == 0
    return labelproof.load_run(folder)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a run on it beside it."""
    file = write_things(tmp_path_factory.mktemp("table") / "fruit.csv", 120, label="kind")
    options = ("--label", "kind", "--epochs", "20", "--no-audit", "--device", "cpu")
    result = command("fit", file, *options, "--output", file.with_name("run"))
    assert result.exit_code == 0, result.output
    return file


def test_labels_are_predicted_as_what_they_were(tmp_path: Path) -> None:
    table = pd.DataFrame({"size": np.arange(60) % 40, "ripe": np.arange(60) % 40 > 19})
    table["tags"] = [["a", "b"]] * len(table)  # no feature, and no reason to stop
    for yes, no in ((True, False), (1, 0), ("a", "01"), ("1", "0"), (1.5, 0.5)):
        given = table.assign(ripe=table["ripe"].map({True: yes, False: no}))
        given.loc[3, "ripe"] = yes  # wrong
        with pytest.warns(DataWarning, match="tags"):
            run, audit = labelproof.fit(given, "ripe"), labelproof.audit(given, "ripe")
        assert (run.predict(table)["label"] == given["ripe"]).sum() == len(table) - 1
        assert audit.suspects["given"].tolist() == [yes]
        assert audit.suspects_csv().splitlines()[1].split(",")[1] == str(yes)


def test_arrays_datasets_and_files_are_predicted(digits: labelproof.Run, tmp_path: Path) -> None:
    images = load_digits().test.array
    predicted = digits.predict(images[:, 0])
    assert predicted.columns.tolist() == [
        "label",
        "probability",
        *(f"p({name})" for name in range(10)),
    ]
    assert (predicted["label"] == load_digits().test.labels).mean() > 0.3
    np.testing.assert_allclose(predicted.iloc[:, 2:], digits.probabilities(images), rtol=1e-5)
    for dataset in (load_digits(), "digits"):
        pd.testing.assert_frame_equal(digits.predict(dataset), predicted)
    np.save(tmp_path / "new.npy", images[:, 0])
    from_file = digits.predict(str(tmp_path / "new.npy"))
    assert from_file.index.name == "index"
    np.testing.assert_array_equal(from_file["label"], predicted["label"])
    write_images(tmp_path / "photos", ["a.png", "b/c.png"], mode="L")
    (tmp_path / "photos" / "d.png").write_bytes(b"oops")
    with pytest.warns(DataWarning, match="d.png"):
        found = digits.predict(tmp_path / "photos")
    assert found.index.tolist() == [f"{tmp_path}/photos/{name}" for name in ("a.png", "b/c.png")]
    files = sorted((tmp_path / "photos").rglob("[ac].png"))
    pd.testing.assert_frame_equal(digits.predict(files), found)
    both = digits.predict([tmp_path / "new.npy", *files])
    assert both.index.tolist() == [*from_file.index, *found.index]
    frame = pd.DataFrame({"file": [*map(str, files)]}, index=["x", "y"])
    pd.testing.assert_frame_equal(digits.predict(frame), found.set_axis(frame.index))
    with pytest.raises(ValueError, match="column of images"):
        digits.predict(pd.DataFrame({"x": [1]}))


def test_rows_are_predicted_by_the_columns_of_the_run(table: Path) -> None:
    run = labelproof.load_run(table.with_name("run"))
    frame = pd.read_csv(table).drop(columns="kind").iloc[:, ::-1]
    frame.index = pd.Index([f"fruit {row}" for row in range(120)])
    predicted = run.predict(frame)
    assert predicted.index.equals(frame.index)
    assert predicted["label"].tolist() == run.predict(table)["label"].tolist()
    assert run.predict(table).index[0] == "line 2"
    with pytest.raises(ValueError, match="width"):
        run.predict(frame.drop(columns="width"))


def test_the_evaluation_is_what_the_command_prints(digits: labelproof.Run, table: Path) -> None:
    found = digits.evaluate()
    assert (found.n, found.split, found.learned_from_n) == (450, "test", 0)
    assert found.accuracy == digits.metrics["test_accuracy"].iloc[-1]
    assert found.classes["n"].sum() == found.confusion.to_numpy().sum() == 450
    run = labelproof.load_run(table.with_name("run"))
    frame = pd.read_csv(table)
    inputs, labels = frame.drop(columns="kind"), frame["kind"]
    for data in (frame, (inputs, labels), table):
        measured = run.evaluate(data, split="train")
        assert measured.n == 120
        assert measured.learned_from_n == 120
    with pytest.raises(ValueError, match="y: "):
        run.evaluate((inputs, labels[:5]))
    with pytest.raises(ValueError, match=r"has no validation split, only train"):
        run.evaluate(split="val")
    with pytest.raises(ValueError, match=r"has no test split, only train; .* --data$"):
        run.evaluate()


def test_metrics_have_their_epoch_in_the_index_alone(digits: labelproof.Run) -> None:
    metrics = digits.metrics
    assert metrics.groupby("epoch").mean().equals(metrics.astype(float))
    assert metrics.reset_index()["epoch"].tolist() == [*range(1, digits.epochs + 1)]


def test_a_run_audits_the_labels_it_was_trained_on(table: Path) -> None:
    run = labelproof.load_run(table.with_name("run"))
    audit = run.audit()
    for same in (labelproof.audit(run), labelproof.audit(run.folder)):
        assert same.suspects.equals(audit.suspects)
    assert audit.data == str(table)
    assert len(audit.findings) == 120
    assert audit.findings.agreement.value > 0.7


FACTORY = """
from pathlib import Path
from torch import nn

Path(__file__).with_name("ran").touch()


def make(num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))
"""


def test_a_factory_is_imported_only_if_the_caller_names_it(
    digits: labelproof.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(tmp_path)
    run, ran = tmp_path / "run", tmp_path / "ran"
    chosen = labelproof.Configuration("digits", network="evil:make", epochs=1)
    labelproof.train(chosen, run, device="cpu")  # whoever trains with it has named it
    ran.unlink()
    del sys.modules["evil"]
    for verb in (
        ("predict", run, tmp_path / "new.npy"),
        ("evaluate", run),
        ("export", run, "--format", "torch-export"),
        ("audit", run),
    ):
        for more in ((), ("--network", "other:make")):
            refused = command(*verb, *more)
            assert isinstance(refused.exception, ValueError), verb
            assert "--network evil:make" in str(refused.exception)
    with pytest.raises(ValueError, match="network"):
        labelproof.load_run(run)
    assert not ran.exists()
    assert command("evaluate", run, "--network", "evil:make").exit_code == 0
    assert labelproof.load_run(run, network="evil:make").evaluate().n == 450
    audited = command("audit", run, "--network", "evil:make", "--device", "cpu")
    assert audited.exit_code == 0, audited.output
    assert ran.exists()
    # Planted in the folder of another run it does not reach the weights.
    ran.unlink()
    del sys.modules["evil"]
    shutil.copytree(digits.folder, tmp_path / "planted")
    file = tmp_path / "planted" / "model.json"
    model = json.loads(file.read_text())
    file.write_text(json.dumps({**model, "network": "evil:make"}))
    with pytest.raises(ValueError, match="evil:make"):
        labelproof.load_run(file.parent, network=model["network"])
    assert not ran.exists()
