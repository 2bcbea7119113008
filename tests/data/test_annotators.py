"""Labels of several annotators: in arrays, tables, audits and fits."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from labelproof.audit import Audit
from labelproof.data import judge_votes, load_dataset
from labelproof.data.load import Reading
from labelproof.verbs.audit import audit
from labelproof.verbs.fit import fit

NAMES = ["ann", "bob", "eve <b>"]
RIGHT = [0.95, 0.75, 0.5]
MORE = [0.95, 0.85, 0.75, 0.5, 0.5, 0.4]
CLASSES = np.array(["cat", "dog", "fox"], dtype=object)


def vote(size: int, missing: float, right: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """True classes, and what each annotator says; -1 where one says nothing."""
    generator, shape = np.random.default_rng(0), (size, len(right))
    true = generator.integers(3, size=size)
    other = (true[:, None] + generator.integers(1, 3, shape)) % 3
    votes = np.where(generator.random(shape) > right, other, true[:, None])
    return true, np.where(generator.random(shape) < missing, -1, votes)


@pytest.fixture
def pets() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of three classes that overlap a little, each with at least one label of three."""
    true, votes = vote(300, 0.3, RIGHT)
    rows = np.random.default_rng(1).normal(size=(300, 3)) + 3 * np.eye(3)[true]
    frame = pd.DataFrame(rows, columns=["x", "y", "z"])
    frame[NAMES] = np.append(CLASSES, "")[votes]
    kept = (votes >= 0).any(axis=1)
    return frame[kept].reset_index(drop=True), true[kept]


def test_good_annotators_count_more_by_the_formula() -> None:
    true, votes = vote(3000, 0.2, MORE)
    judged = judge_votes(votes, 3)
    np.testing.assert_allclose(judged.accuracy, MORE, atol=0.04)
    counts = np.stack([(votes == label).sum(axis=1) for label in range(3)], axis=1)
    right = np.mean(judged.posterior.argmax(axis=1) == true)
    assert right > np.mean(counts.argmax(axis=1) == true) + 0.03
    # By Bayes' rule, what is left of each sample without its votes is the same: the frequencies.
    left = np.log(judged.posterior[:20] + 1e-300)
    for sample, annotator in np.argwhere(votes[:20] >= 0):
        left[sample] -= np.log(judged.confusion[annotator, :, votes[sample, annotator]])
    left -= np.logaddexp.reduce(left, axis=1, keepdims=True)
    np.testing.assert_allclose(left, np.tile(left[:1], (20, 1)), atol=1e-6)


def test_a_model_helps_where_votes_are_few() -> None:
    true, votes = vote(1000, 0.6, RIGHT)
    model = np.random.default_rng(3).dirichlet([1, 1, 1], 1000) + 1.5 * np.eye(3)[true]
    soft = model**0.4  # sharper or softer probabilities are calibrated
    tables = [None, *(each / each.sum(axis=1, keepdims=True) for each in (model, soft))]
    found = [judge_votes(votes, 3, each).posterior.argmax(axis=1) for each in tables]
    assert np.mean(found[1] == true) > np.mean(found[0] == true) + 0.1
    assert np.mean(found[1] == found[2]) > 0.93
    none = judge_votes([[0, -1], [1, -1], [-1, -1]], 2, [[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    assert none.posterior.argmax(axis=1).tolist() == [0, 1, 1]
    assert none.accuracy[1] == 0


def test_columns_of_tables(pets: Any, tmp_path: Path) -> None:
    frame, true = pets
    frame.loc[7, NAMES] = ""
    frame.to_csv(tmp_path / "pets.csv", index=False)
    with pytest.warns(UserWarning, match="without a label"):
        data = load_dataset(tmp_path / "pets.csv", annotators=NAMES, on_error="skip")
    assert data.columns is not None
    assert (data.annotators, data.columns.names) == (tuple(NAMES), ("x", "y", "z"))
    votes = np.stack([pd.Index(CLASSES).get_indexer(frame.drop(7)[name]) for name in NAMES], 1)
    np.testing.assert_array_equal(data.train.votes, votes)
    reading = Reading(annotators=tuple(NAMES))
    assert Reading.of(reading.as_values()) == reading
    assert reading.flags()[:2] == ["--annotators", "ann"]
    # A column of labels beside them, some of which a file replaces.
    (tmp_path / "labels.csv").write_text("sample,label\nrow 0,fox\nrow 1,\n")
    more: Any = {"label": "label", "labels": tmp_path / "labels.csv"}
    data = load_dataset(frame.assign(label=CLASSES[true]), annotators=NAMES, **more)
    np.testing.assert_array_equal(data.train.labels, [2, *true[2:]])
    np.testing.assert_array_equal(np.delete(data.train.votes, 6, 0), np.delete(votes, 1, 0))
    frame.loc[7, NAMES] = ["cat", "fax", "cat"]
    with pytest.warns(UserWarning, match="1 vote left out, for classes that no row has: fax"):
        load_dataset(frame, annotators=NAMES)
    # A table of images.
    lines = ["file,ann,bob", "b.png,cat,dog", "a.png,dog,dog", "gone.png,cat,cat", "c.png,cat,"]
    for number, name in enumerate("abc"):
        Image.effect_noise((8, 8), 20 + number).save(tmp_path / f"{name}.png")
    (tmp_path / "pets.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="without a file"):
        data = load_dataset(tmp_path / "pets.csv", annotators=["ann", "bob"], on_error="skip")
    np.testing.assert_array_equal(data.train.votes, [[0, 1], [1, 1], [0, -1]])


def test_refusals(pets: Any) -> None:
    frame, both = pets[0], ["ann", "bob"]
    for data, names, label, words in (
        ("digits", both, None, "annotators: expected a table"),
        (frame, ["ann"], None, "annotators: expected two columns"),
        (frame, ["ann", "rob"], None, "annotators: expected a column .* mean 'bob'"),
        (frame, both, "ann", "label: expected a column"),
    ):
        with pytest.raises(ValueError, match=words):
            load_dataset(data, annotators=names, label=label)
    run = fit(frame, annotators=NAMES, audit=False)
    with pytest.raises(ValueError, match="--annotators: expected without a run"):
        audit(run, annotators=NAMES)


def test_an_audit_its_folder_and_a_fit(pets: Any, tmp_path: Path) -> None:
    frame, true = pets
    found = audit(frame, annotators=NAMES, output=tmp_path / "audit")
    annotators, wrong = found.annotators, found.findings.given != true
    assert annotators is not None
    assert annotators["annotator"].tolist() == NAMES
    assert ((annotators["low"] < RIGHT) & (annotators["high"] > RIGHT)).all()
    assert np.mean(found.findings.suggested == true) > np.mean(~wrong) + 0.05
    assert found.noise_rate.low < wrong.mean() < found.noise_rate.high
    assert found.suspects["votes"].iloc[0].split()[0] in CLASSES
    again = Audit.read(tmp_path / "audit")
    pd.testing.assert_frame_equal(annotators, again.annotators)
    np.testing.assert_array_equal(found.votes, again.votes)
    disputed = [len({*row} - {""}) > 1 for row in frame[NAMES].to_numpy()]
    assert again.disputed == sum(disputed)
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "eve &lt;b&gt;" in page
    assert "eve <b>" not in page
    run = fit(frame, annotators=NAMES)
    assert np.mean(run.predict(frame[["x", "y", "z"]])["label"] == CLASSES[true]) > 0.9
    pd.testing.assert_frame_equal(run.audit().annotators, annotators)
    # Predictions of another model.
    found = audit(labels=frame[NAMES], probabilities=np.eye(3)[true] * 0.7 + 0.1)
    assert np.mean(found.findings.suggested == true) > 0.99
