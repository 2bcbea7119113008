"""Audits by predictions from elsewhere, with labels and classes as people have them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof
from typer.testing import Result

from labelproof.audit import Audit, open_samples

NAMES = ("cat", "dog", "fox", "snow leopard")
SIZE = 200
TRUE = np.arange(SIZE) % 4
WRONG = np.arange(0, SIZE, 10)
GIVEN = np.where(np.arange(SIZE) % 10 == 0, (TRUE + 1) % 4, TRUE)
TABLE = (np.random.default_rng(0).dirichlet(np.ones(4), SIZE) * 0.2 + 0.8 * np.eye(4)[TRUE]).round(
    4
)
TABLE /= TABLE.sum(axis=1, keepdims=True)
SHUFFLED = np.random.default_rng(1).permutation(SIZE)


def write_labels(folder: Path, kind: str) -> Path:
    words = [NAMES[label] for label in GIVEN]
    texts = [f"the {number}th, which is" for number in range(SIZE)]
    file = folder / f"labels{kind}"
    if kind == ".txt":
        file.write_text("\n".join(words) + "\n")
    elif kind == ".npy":
        np.save(file, np.array(words))
    elif kind == ".jsonl":
        lines = [{"text": text, "label": word} for text, word in zip(texts, words, strict=True)]
        file.write_text("\n".join(json.dumps(line) for line in lines))
    elif kind == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"text": texts, "label": words}), file)
    else:
        with file.open("w", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t" if kind == ".tsv" else ",")
            writer.writerow(["key", "text", "label"])
            writer.writerows([f"k{n}", texts[n], words[n]] for n in range(SIZE))
    return file


def write_predictions(folder: Path, kind: str) -> Path:
    file = folder / f"predictions.{kind.split()[0]}"
    if kind == "npy":
        np.save(file, TABLE)
    elif kind == "npz":
        np.savez(file, probabilities=TABLE[:, ::-1], class_names=np.array(NAMES[::-1]))
    else:
        order = SHUFFLED if "shuffled" in kind else np.arange(SIZE)
        with file.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["key", *NAMES[::-1]] if "shuffled" in kind else NAMES[::-1])
            for row in order:
                ids = [f"k{row}"] if "shuffled" in kind else []
                writer.writerow([*ids, *TABLE[row, ::-1]])
    return file


def audit(folder: Path, *arguments: str | Path) -> Result:
    return labelproof("audit", *arguments, "--output", folder / "audit")


@pytest.mark.parametrize("labels", [".txt", ".npy", ".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("predictions", ["npy", "npz", "csv"])
def test_names_of_classes_are_taken_from_any_file(
    labels: str, predictions: str, tmp_path: Path
) -> None:
    path, table = write_labels(tmp_path, labels), write_predictions(tmp_path, predictions)
    result = audit(tmp_path, path, "--probabilities", table)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    found = Audit.read(tmp_path / "audit")
    assert sorted(found.class_names) == sorted(NAMES)
    assert np.array_equal(np.sort(found.findings.suspects), WRONG)
    names = np.array(found.class_names)
    assert names[found.findings.given].tolist() == [NAMES[label] for label in GIVEN]
    assert names[found.findings.suggested[WRONG]].tolist() == [NAMES[t] for t in TRUE[WRONG]]


def test_rows_of_a_table_are_matched_by_its_ids_and_shown_with_their_text(tmp_path: Path) -> None:
    path = write_labels(tmp_path, ".csv")
    table = write_predictions(tmp_path, "csv shuffled")
    result = audit(tmp_path, path, "--probabilities", table)
    assert result.exit_code == 0, result.output
    found = Audit.read(tmp_path / "audit")
    assert np.array_equal(np.sort(found.findings.suspects), WRONG)
    assert found.samples[:2] == ["line 2", "line 3"]
    samples = open_samples(found)
    assert samples.kind == "rows"
    assert (samples.audit.index >= 0).all()
    assert samples.cells(3) == [
        ("key", "k3"),
        ("text", "the 3th, which is"),
        ("label", NAMES[GIVEN[3]]),
    ]


def test_a_column_of_labels_alone_will_do(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["kind", *(NAMES[label] for label in GIVEN)]) + "\n")
    table = write_predictions(tmp_path, "csv")
    result = audit(tmp_path, path, "--probabilities", table, "--label", "kind")
    assert result.exit_code == 0, result.output
    assert open_samples(Audit.read(tmp_path / "audit")).cells(0) == [("kind", NAMES[GIVEN[0]])]


def test_images_that_are_not_here_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    lines = [f"{number}.jpg,{NAMES[label]}" for number, label in enumerate(GIVEN)]
    path.write_text("\n".join(["file,label", *lines]) + "\n")
    result = audit(tmp_path, path, "--probabilities", write_predictions(tmp_path, "csv"))
    assert result.exit_code == 0, result.output
    found = Audit.read(tmp_path / "audit")
    assert found.kind == "rows"
    assert open_samples(found).cells(0)[0] == ("file", "0.jpg")


@pytest.mark.parametrize("by_file", [True, False])
def test_columns_are_called_by_a_list_of_names(by_file: bool, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", TABLE[:, ::-1])
    names = ",".join(NAMES[::-1])
    if by_file:
        (tmp_path / "names.txt").write_text("\n".join(NAMES[::-1]))
        names = str(tmp_path / "names.txt")
    for labels in (write_labels(tmp_path, ".txt"), write_labels(tmp_path, ".csv")):
        command = (labels, "--probabilities", tmp_path / "p.npy", "--class-names", names)
        result = audit(tmp_path, *command)
        assert result.exit_code == 0, result.output
        found = Audit.read(tmp_path / "audit")
        assert found.class_names == NAMES[::-1]
        assert np.array_equal(np.sort(found.findings.suspects), WRONG)


def test_a_class_that_no_label_has_is_no_obstacle_to_the_review(tmp_path: Path) -> None:
    path = write_labels(tmp_path, ".csv")
    wide = np.concatenate([np.full((SIZE, 1), 0.01), TABLE * 0.99], axis=1)
    np.savez(tmp_path / "p.npz", probabilities=wide, class_names=np.array(["ape", *NAMES]))
    result = audit(tmp_path, path, "--probabilities", tmp_path / "p.npz")
    assert result.exit_code == 0, result.output
    found = Audit.read(tmp_path / "audit")
    assert found.class_names == ("ape", *NAMES)
    assert (open_samples(found).audit.index >= 0).all()


def refusal(folder: Path, *arguments: str | Path) -> str:
    result = audit(folder, *arguments)
    assert isinstance(result.exception, (ValueError, OSError)), result.output
    assert not (folder / "audit" / "audit.json").exists()
    return str(result.exception)


def test_what_does_not_belong_together_is_told(tmp_path: Path) -> None:
    labels = write_labels(tmp_path, ".txt")
    table = write_predictions(tmp_path, "csv")
    given = ("--probabilities", table)
    (tmp_path / "few.txt").write_text("cat\ndog\nfox\nsnow leopard\n")
    said = refusal(tmp_path, tmp_path / "few.txt", *given)
    assert "one for each of 200 rows of the probabilities, got 4" in said
    (tmp_path / "typo.txt").write_text(labels.read_text().replace("fox", "focks"))
    said = refusal(tmp_path, tmp_path / "typo.txt", *given)
    assert "1 class of" in said
    assert "'focks'; its columns are 'snow leopard', 'fox', 'dog', 'cat'" in said
    (tmp_path / "sums.csv").write_text(
        "cat,dog,fox,snow leopard\n.5,.5,0,0\n.5,.9,0,0\n", encoding="utf-8"
    )
    said = refusal(tmp_path, labels, "--probabilities", tmp_path / "sums.csv")
    assert "rows that sum to 1, got 1.4 in row 1" in said
    assert "have names of their own" in refusal(tmp_path, labels, *given, "--class-names", "a,b")
    np.save(tmp_path / "p.npy", TABLE)
    plain = ("--probabilities", tmp_path / "p.npy")
    said = refusal(tmp_path, labels, *plain, "--class-names", "a,b")
    assert "one for each of 4 columns" in said
    assert "--class-names: expected with --probabilities" in refusal(
        tmp_path, labels, "--class-names", "a,b"
    )
    (tmp_path / "bare.csv").write_text(labels.read_text())
    said = refusal(tmp_path, tmp_path / "bare.csv", *given)
    assert "which is a label of other rows too; add a line of names" in said


def test_a_row_without_a_label_is_to_be_taken_out_of_both(tmp_path: Path) -> None:
    path = write_labels(tmp_path, ".csv")
    # The first text, in quotes for its comma, and then its label.
    path.write_text(path.read_text().replace('which is",dog', 'which is",', 1))
    said = refusal(tmp_path, path, "--probabilities", write_predictions(tmp_path, "csv"))
    assert "1 of 200 rows without a label in the column 'label': line 2; mend the data" in said
    assert said.endswith("whose rows are matched with the data by their order")
    assert "on_error" not in said
    # Where rows say what they are about, one more does no harm.
    named = write_predictions(tmp_path, "csv shuffled")
    result = audit(tmp_path, path, "--probabilities", named)
    assert result.exit_code == 0, result.output
    assert "line 2; left out" in result.output
    assert "About 19 of 199 labels are wrong" in result.output


def test_many_names_are_not_taken_for_a_file(tmp_path: Path) -> None:
    names = [f"class number {number:03d}" for number in range(SIZE // 2)]
    (tmp_path / "labels.txt").write_text("\n".join(names * 2))
    np.save(tmp_path / "p.npy", np.tile(np.eye(SIZE // 2) * 0.9 + 0.1 / (SIZE // 2), (2, 1)))
    given = ("--probabilities", tmp_path / "p.npy", "--class-names", ",".join(names))
    result = audit(tmp_path, tmp_path / "labels.txt", *given, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "Data: 200 labels, 100 classes (class number 000, " in result.stdout


@pytest.mark.parametrize(
    "flag",
    [
        *(["--device", "cpu"], ["--workers", "0"], ["--image-memory", "9"]),
        *(["--human-labels", "h.npy"], ["--strict"], ["--epochs", "3"]),
    ],
)
def test_flags_that_mean_nothing_are_refused(flag: list[str], tmp_path: Path) -> None:
    labels, table = write_labels(tmp_path, ".txt"), write_predictions(tmp_path, "csv")
    said = refusal(tmp_path, labels, "--probabilities", table, *flag)
    assert said.startswith(f"{flag[0]}: ")
    assert "audit with --probabilities" in said


def test_rows_that_a_review_left_out_are_told(tmp_path: Path) -> None:
    path = write_labels(tmp_path, ".csv")
    (tmp_path / "review.csv").write_text("sample,label\nline 5,\n")
    given = ("--labels", tmp_path / "review.csv", "--probabilities")
    said = refusal(tmp_path, path, *given, write_predictions(tmp_path, "npy"))
    assert "got 199; 1 sample of" in said
    assert "left out by the file of labels (--labels): line 5; leave the same out" in said
    table = write_predictions(tmp_path, "csv shuffled")
    result = audit(tmp_path, path, *given, table)
    assert result.exit_code == 0, result.output
    assert "1 row of samples that are not in" in result.stderr
    found = Audit.read(tmp_path / "audit")
    assert np.array_equal(np.sort(found.findings.suspects), [0, *(WRONG[1:] - 1)])


@pytest.mark.parametrize("column", ["Key", " KEY"])
def test_a_column_of_ids_is_found_in_upper_or_lower_case(column: str, tmp_path: Path) -> None:
    path, table = write_labels(tmp_path, ".csv"), write_predictions(tmp_path, "csv shuffled")
    path.write_text(path.read_text().replace("key,", f"{column},", 1))
    result = audit(tmp_path, path, "--probabilities", table)
    assert (result.exit_code, result.stderr) == (0, "")
    assert np.array_equal(np.sort(Audit.read(tmp_path / "audit").findings.suspects), WRONG)


def test_ids_of_both_sides_that_are_others_are_refused(tmp_path: Path) -> None:
    path, table = write_labels(tmp_path, ".csv"), write_predictions(tmp_path, "csv shuffled")
    text = path.read_text()
    path.write_text(text.replace("\nk", "\nother"))
    said = refusal(tmp_path, path, "--probabilities", table)
    assert "such as other0, other1, other2 and 197 more, in the column 'key' of" in said
    assert said.endswith("remove the column to match rows by their order")
    path.write_text(text.replace("\nk1,", "\nk0,"))
    said = refusal(tmp_path, path, "--probabilities", table)
    assert "got more than one called k0 by the column 'key'" in said


def test_images_that_are_not_here_are_known_by_their_names(tmp_path: Path) -> None:
    path, table = tmp_path / "labels.csv", tmp_path / "p.csv"
    lines = [f"{number}.jpg,{NAMES[label]}" for number, label in enumerate(GIVEN)]
    path.write_text("\n".join(["file,label", *lines]) + "\n")
    rows = [f"{row}.jpg,{','.join(map(str, TABLE[row]))}" for row in SHUFFLED]
    table.write_text("\n".join([f"path,{','.join(NAMES)}", *rows]))
    result = audit(tmp_path, path, "--probabilities", table)
    assert (result.exit_code, result.stderr) == (0, "")
    assert np.array_equal(np.sort(Audit.read(tmp_path / "audit").findings.suspects), WRONG)


def test_a_dry_run_matches_and_writes_nothing(tmp_path: Path) -> None:
    labels, table = write_labels(tmp_path, ".txt"), write_predictions(tmp_path, "csv")
    before = set(tmp_path.iterdir())
    result = audit(tmp_path, labels, "--probabilities", table, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "Data: 200 labels, 4 classes (snow leopard, fox, dog, cat)" in result.stdout
    assert f"Predictions: {table}; nothing is trained" in result.stdout
    assert f"Folder: {tmp_path / 'audit'}" in result.stdout
    assert set(tmp_path.iterdir()) == before
    (tmp_path / "few.txt").write_text("cat\ndog\nfox\nsnow leopard\n")
    assert "got 4" in refusal(tmp_path, tmp_path / "few.txt", "--probabilities", table, "--dry-run")
