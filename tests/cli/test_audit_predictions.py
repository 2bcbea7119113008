"""Audits by predictions from elsewhere, with labels and classes as people have them."""

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
TEXTS = [f"the {number}th, which is" for number in range(SIZE)]
BY_ID = ("--probabilities", "shuffled.csv", "--id", "key")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with labels and predictions in files of several kinds."""
    monkeypatch.chdir(tmp_path)
    keys = [f"k{number}" for number in range(SIZE)]
    frame = pd.DataFrame(TABLE, columns=NAMES)[list(NAMES[::-1])]
    np.save("p.npy", TABLE)
    frame.to_csv("p.csv", index=False)
    frame.assign(key=keys).sample(frac=1, random_state=0).to_csv("shuffled.csv", index=False)
    Path("labels.txt").write_text("\n".join(WORDS) + "\n")
    labels = pd.DataFrame({"key": keys, "text": TEXTS, "label": WORDS})
    labels.to_csv("labels.csv", index=False)


def test_labels_and_predictions_may_be_in_any_file_and_matched_by_id() -> None:
    for labels, predictions in (
        ("labels.txt", ("--probabilities", "p.npy")),
        ("labels.csv", ("--probabilities", "p.csv")),
        ("labels.csv", BY_ID),
    ):
        assert succeed("audit", labels, *predictions, "--output", "audit").stderr == ""
        found = Audit.read(Path("audit"))
        assert np.array_equal(np.sort(found.findings.suspects), WRONG)
        names = np.array(found.class_names)
        assert names[found.findings.given].tolist() == WORDS
        assert names[found.findings.suggested[WRONG]].tolist() == [NAMES[t] for t in TRUE[WRONG]]
    assert found.samples[:2] == ["line 2", "line 3"]
    samples = open_samples(found)
    assert samples.kind == "rows"
    assert (samples.audit.index >= 0).all()
    assert samples.cells(3) == [("key", "k3"), ("text", TEXTS[3]), ("label", WORDS[3])]


def test_rows_that_were_left_out_are_told() -> None:
    command, array = ("audit", "labels.csv", "--output", "audit"), ("--probabilities", "p.npy")
    Path("review.csv").write_text("sample,label\nline 5,\n")
    review = ("--labels", "review.csv")
    assert "200 rows of the probabilities, got 199" in refusal(*command, *review, *array)
    result = succeed(*command, *review, *BY_ID)
    assert "1 row about samples that are not in" in result.stderr
    found = Audit.read(Path("audit"))
    assert np.array_equal(np.sort(found.findings.suspects), [0, *(WRONG[1:] - 1)])
    # The first text, in quotes for its comma, and then its label.
    file = Path("labels.csv")
    file.write_text(file.read_text().replace('which is",dog', 'which is",', 1))
    said = refusal(*command, *array)
    assert "line 2" in said
    assert "--id" in said
    result = succeed(*command, *BY_ID)
    assert "line 2; left out" in result.output
    assert "About 19 of 199 labels are wrong" in result.output
