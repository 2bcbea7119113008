from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from labelproof.audit import Audit
from labelproof.data import load_dataset
from labelproof.data.annotators import consensus, judge_votes
from labelproof.data.load import Reading
from labelproof.verbs.audit import audit
from labelproof.verbs.fit import fit

NAMES = ("ann", "bob", "eve <b>")
RIGHT = [0.95, 0.75, 0.5]
MORE = [0.95, 0.85, 0.75, 0.5, 0.5, 0.4]
CLASSES = np.array(["cat", "dog", "fox"], dtype=object)


def vote(
    size: int, seed: int, missing: float = 0.3, right: list[float] = RIGHT
) -> tuple[np.ndarray, np.ndarray]:
    """True classes, and what each annotator says; -1 where one says nothing."""
    generator = np.random.default_rng(seed)
    true = generator.integers(3, size=size)
    shape = size, len(right)
    other = (true[:, None] + generator.integers(1, 3, shape)) % 3
    votes = np.where(generator.random(shape) > right, other, true[:, None])
    return true, np.where(generator.random(shape) < missing, -1, votes)


def table(size: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of three classes that overlap a little, with columns of three annotators."""
    true, votes = vote(size, 0)
    rows = np.random.default_rng(1).normal(size=(size, 3)) + 3 * np.eye(3)[true]
    frame = pd.DataFrame(rows, columns=["x", "y", "z"])
    for name, column in zip(NAMES, votes.T, strict=True):
        frame[name] = np.append(CLASSES, "")[column]
    return frame, true


def test_accuracy_of_annotators_and_the_formula():
    _, votes = vote(3000, 0, right=MORE)
    judged = judge_votes(votes, 3)
    np.testing.assert_allclose(judged.accuracy, MORE, atol=0.04)
    # Bayes' rule, sample by sample, with the matrices that were found.
    frequencies = np.exp(
        [
            np.log(judged.posterior[i] + 1e-300)
            - sum(np.log(judged.confusion[a, :, k]) for a, k in enumerate(votes[i]) if k >= 0)
            for i in range(20)
        ]
    )
    shares = frequencies / frequencies.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, np.tile(shares[:1], (20, 1)), atol=1e-6)


def test_a_model_helps_where_votes_are_few():
    true, votes = vote(1000, 2, missing=0.6)
    model = np.random.default_rng(3).dirichlet([1, 1, 1], 1000) + 1.5 * np.eye(3)[true]
    model /= model.sum(axis=1, keepdims=True)
    alone, both = judge_votes(votes, 3), judge_votes(votes, 3, model)
    right = [np.mean(judged.posterior.argmax(axis=1) == true) for judged in (alone, both)]
    assert right[1] > right[0] + 0.1
    # Sharper or softer probabilities are calibrated.
    softer = model**0.4 / (model**0.4).sum(axis=1, keepdims=True)
    same = judge_votes(votes, 3, softer).posterior.argmax(axis=1) == both.posterior.argmax(axis=1)
    assert same.mean() > 0.93


def test_no_votes():
    votes = np.array([[0, 0, -1], [1, 1, -1], [-1, -1, -1], [0, 1, -1]])
    model = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    judged = judge_votes(votes, 2, model)
    assert judged.posterior[2].argmax() == 1
    assert np.isfinite(judged.posterior).all()
    assert judged.accuracy[2] == 0
    assert consensus(pd.DataFrame({"a": ["", ""], "b": ["", ""]})).tolist() == ["", ""]


def test_better_annotators_outvote_worse_ones():
    true, votes = vote(3000, 4, missing=0.0, right=MORE)
    judged = judge_votes(votes, 3).posterior.argmax(axis=1)
    counts = np.stack([(votes == label).sum(axis=1) for label in range(3)], axis=1)
    assert np.mean(judged == true) > np.mean(counts.argmax(axis=1) == true) + 0.03


def test_columns_of_a_table(tmp_path: Path):
    frame, _ = table()
    frame.loc[7, list(NAMES)] = ""
    frame.to_csv(tmp_path / "pets.csv", index=False)
    with pytest.warns(UserWarning, match="without a label"):
        data = load_dataset(tmp_path / "pets.csv", annotators=NAMES, on_error="skip")
    assert data.class_names == tuple(CLASSES)
    assert data.annotators == NAMES
    assert data.columns is not None
    assert data.columns.names == ("x", "y", "z")
    kept = (frame[list(NAMES)] != "").any(axis=1)
    expected = np.stack([pd.Index(CLASSES).get_indexer(frame[name][kept]) for name in NAMES], 1)
    np.testing.assert_array_equal(data.train.votes, expected)
    reading = Reading(annotators=NAMES)
    assert Reading.of(reading.as_values()) == reading
    assert reading.flags()[:2] == ["--annotators", "ann"]


def test_columns_of_a_table_of_images(tmp_path: Path):
    lines = ["file,ann,bob", "b.png,cat,dog", "a.png,dog,dog", "gone.png,cat,cat", "c.png,cat,"]
    for number, name in enumerate("abc"):
        Image.effect_noise((8, 8), 20 + number).save(tmp_path / f"{name}.png")
    (tmp_path / "pets.csv").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="without a file"):
        data = load_dataset(tmp_path / "pets.csv", annotators=["ann", "bob"], on_error="skip")
    assert data.train.votes is not None
    assert data.train.votes.tolist() == [[0, 1], [1, 1], [0, -1]]


def test_labels_beside_votes_and_a_file_of_labels(tmp_path: Path):
    frame, true = table()
    frame["label"] = CLASSES[true]
    (tmp_path / "labels.csv").write_text("sample,label\nrow 0,fox\nrow 1,\n")
    labels = tmp_path / "labels.csv"
    data = load_dataset(frame, annotators=NAMES, label="label", labels=labels)
    assert len(data.train) == 299
    assert data.train.votes is not None
    assert len(data.train.votes) == 299
    assert CLASSES[data.train.labels[0]] == "fox"
    np.testing.assert_array_equal(data.train.labels[1:], true[2:])


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("digits", {"annotators": ["ann", "bob"]}, "annotators: expected a table"),
        ("table", {"annotators": ["ann"]}, "annotators: expected two columns"),
        ("table", {"annotators": ["ann", "rob"]}, "annotators: expected a column .* mean 'bob'"),
        ("table", {"annotators": ["ann", "bob"], "label": "ann"}, "label: expected a column"),
        ("consensus", {"annotators": ["ann", "bob"]}, "label: expected a name"),
        ("repeats", {"annotators": ["ann", "bob"]}, "annotators: expected an index"),
    ],
)
def test_refusals(data: str, options: dict, words: str):
    frame = table(30)[0].assign(**({"consensus": "cat"} if data == "consensus" else {}))
    if data == "repeats":
        frame.index = [0] * len(frame)
    with pytest.raises(ValueError, match=words):
        load_dataset("digits" if data == "digits" else frame, **options)


def test_an_audit_and_its_folder(tmp_path: Path):
    frame, true = table()
    kept = (frame[list(NAMES)] != "").any(axis=1).to_numpy()
    found = audit(frame[kept], annotators=NAMES, output=tmp_path / "audit")
    findings, annotators = found.findings, found.annotators
    assert annotators is not None
    assert annotators["annotator"].tolist() == list(NAMES)
    assert (annotators["low"] < RIGHT).all()
    assert (annotators["high"] > RIGHT).all()
    wrong = findings.given != true[kept]
    assert np.mean(findings.suggested == true[kept]) > np.mean(~wrong) + 0.05
    assert found.noise_rate.low < wrong.mean() < found.noise_rate.high
    row = found.suspects.iloc[0]
    assert row["votes"].split()[0] in CLASSES
    again = Audit.read(tmp_path / "audit")
    pd.testing.assert_frame_equal(annotators, again.annotators)
    np.testing.assert_array_equal(found.votes, again.votes)
    assert again.disputed == sum(
        len({cell for cell in row if cell}) > 1 for row in frame[kept][list(NAMES)].to_numpy()
    )
    page = (tmp_path / "audit" / "report.html").read_text()
    assert "eve &lt;b&gt;" in page
    assert "eve <b>" not in page
    assert 'id="annotators"' in page


def test_votes_with_predictions_of_another_model():
    frame, true = table()
    votes = frame[list(NAMES)][lambda cells: (cells != "").any(axis=1)]
    model = np.full((len(votes), 3), 0.1) + 0.7 * np.eye(3)[true[votes.index]]
    found = audit(labels=votes, probabilities=model)
    assert np.mean(found.findings.suggested == true[votes.index]) > 0.99
    assert found.annotators is not None
    assert len(found.annotators) == 3


def test_fit_takes_the_consensus():
    frame, true = table()
    kept = (frame[list(NAMES)] != "").any(axis=1).to_numpy()
    run = fit(frame[kept], annotators=NAMES)
    predicted = run.predict(frame[["x", "y", "z"]])["label"].to_numpy()
    assert np.mean(predicted == CLASSES[true]) > 0.9
    annotators = run.audit().annotators
    assert annotators is not None
    assert annotators["labels"].sum() > 500
