"""Audits by predictions from elsewhere, with labels and classes as people have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from trained import refusal, succeed

from labelproof.audit import Audit, open_samples

NAMES = ("cat", "dog", "fox", "snow leopard")
SIZE = 200
TRUE = np.arange(SIZE) % 4
WRONG = np.arange(0, SIZE, 10)
GIVEN = np.where(np.arange(SIZE) % 10 == 0, (TRUE + 1) % 4, TRUE)
TABLE = np.random.default_rng(0).dirichlet(np.ones(4), SIZE) * 0.2 + 0.8 * np.eye(4)[TRUE]
WORDS = [NAMES[label] for label in GIVEN]
KEYS = [f"k{number}" for number in range(SIZE)]
TEXTS = [f"the {number}th, which is" for number in range(SIZE)]


def write_labels(folder: Path, kind: str) -> Path:
    file = folder / f"labels{kind}"
    if kind == ".txt":
        file.write_text("\n".join(WORDS) + "\n")
    else:
        pd.DataFrame({"key": KEYS, "text": TEXTS, "label": WORDS}).to_csv(file, index=False)
    return file


def write_predictions(folder: Path, kind: str) -> Path:
    file = folder / f"predictions.{kind.split()[0]}"
    frame = pd.DataFrame(TABLE, columns=NAMES)[list(NAMES[::-1])]
    if kind == "npy":
        np.save(file, TABLE)
    elif "shuffled" in kind:
        frame.assign(key=KEYS).sample(frac=1, random_state=0).to_csv(file, index=False)
    else:
        frame.to_csv(file, index=False)
    return file


def audited(folder: Path, *arguments: str | Path) -> Audit:
    assert succeed("audit", *arguments, "--output", folder / "audit").stderr == ""
    found = Audit.read(folder / "audit")
    assert np.array_equal(np.sort(found.findings.suspects), WRONG)
    names = np.array(found.class_names)
    assert names[found.findings.given].tolist() == WORDS
    assert names[found.findings.suggested[WRONG]].tolist() == [NAMES[t] for t in TRUE[WRONG]]
    return found


def test_labels_and_predictions_may_be_in_any_file(tmp_path: Path) -> None:
    for labels, kind in ((".txt", "npy"), (".csv", "csv")):
        table = write_predictions(tmp_path, kind)
        audited(tmp_path, write_labels(tmp_path, labels), "--probabilities", table)


def test_rows_are_matched_by_id_and_shown_with_their_text(tmp_path: Path) -> None:
    path, table = write_labels(tmp_path, ".csv"), write_predictions(tmp_path, "csv shuffled")
    found = audited(tmp_path, path, "--probabilities", table, "--id", "key")
    assert found.samples[:2] == ["line 2", "line 3"]
    samples = open_samples(found)
    assert samples.kind == "rows"
    assert (samples.audit.index >= 0).all()
    assert samples.cells(3) == [("key", "k3"), ("text", TEXTS[3]), ("label", WORDS[3])]


def test_what_does_not_match_is_told(tmp_path: Path) -> None:
    labels = write_labels(tmp_path, ".txt")
    given = (labels, "--probabilities", write_predictions(tmp_path, "csv"))
    for said, arguments in {
        "none for a, b": (*given, "--class-names", "a,b"),
        "--class-names: ": (labels, "--class-names", "a,b"),
        "--id: ": (labels, "--id", "key"),
        "id: expected a column of": (*given, "--id", "key"),
    }.items():
        assert said in refusal("audit", *arguments, "--output", tmp_path / "audit")
        assert not (tmp_path / "audit" / "audit.json").exists()


def test_rows_that_were_left_out_are_told(tmp_path: Path) -> None:
    path, array = write_labels(tmp_path, ".csv"), write_predictions(tmp_path, "npy")
    command = ("audit", path, "--output", tmp_path / "audit")
    by_id = ("--probabilities", write_predictions(tmp_path, "csv shuffled"), "--id", "key")
    (tmp_path / "review.csv").write_text("sample,label\nline 5,\n")
    review = ("--labels", tmp_path / "review.csv")
    said = refusal(*command, *review, "--probabilities", array)
    assert "200 rows of the probabilities, got 199" in said
    result = succeed(*command, *review, *by_id)
    assert "1 row about samples that are not in" in result.stderr
    found = Audit.read(tmp_path / "audit")
    assert np.array_equal(np.sort(found.findings.suspects), [0, *(WRONG[1:] - 1)])
    # The first text, in quotes for its comma, and then its label.
    path.write_text(path.read_text().replace('which is",dog', 'which is",', 1))
    said = refusal(*command, "--probabilities", array)
    assert "line 2" in said
    assert "--id" in said
    result = succeed(*command, *by_id)
    assert "line 2; left out" in result.output
    assert "About 19 of 199 labels are wrong" in result.output


def test_what_predict_writes_is_matched_by_line_or_by_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"c{n},{n % 2 * 4 + n / 99},{'ab'[n % 2]}" for n in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["customer,size,kind", *lines]))
    small = ("--network", "mlp(hidden=8,depth=1)", "--device", "cpu", "--epochs", "2", "--no-audit")
    label = ("--label", "kind")
    succeed("fit", "t.csv", *label, "--drop", "customer", *small, "--output", "run")
    succeed("predict", "run", "t.csv", "--all", "--id", "customer", "--output", "p.csv")
    pd.read_csv("p.csv").sample(frac=1, random_state=0).to_csv("shuffled.csv", index=False)
    scores = []
    for table, *by in (
        ("p.csv",),
        ("shuffled.csv", "--id", "row"),
        ("shuffled.csv", "--id", "customer"),
    ):
        succeed("audit", "t.csv", *label, "--probabilities", table, *by, "--output", "a")
        scores.append(Audit.read(tmp_path / "a").findings.score)
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
