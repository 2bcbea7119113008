"""Tables and figures of the paper, from records, and runs beside each other."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_records import RECORDS, fill_table, made_record
from PIL import Image
from small_runs import small, train
from trained import labelproof, refusal, succeed

from labelproof.data import load_digits
from labelproof.experiments.figures import embed, sample_test_images, see_features
from labelproof.experiments.records import RecordStore
from labelproof.training import Job
from labelproof.training.configuration import Configuration
from labelproof.training.files import write_text
from labelproof.verbs.run import load_run


def test_a_table_is_printed_or_written_in_the_format_of_the_files_name(tmp_path: Path) -> None:
    result = succeed("table", "symmetric", "--dataset", "mnist", "--records", RECORDS / "mnist")
    assert "MNIST, symmetric noise" in result.output
    assert "98.06 ± 0.86" in result.output
    assert "| GCE+SR | ours" in result.output
    fill_table(RecordStore(tmp_path), "asymmetric", "mnist", {("CE", "0.4"): [80.0]})
    path = tmp_path / "new" / "table.tex"
    arguments = ("table", "asymmetric", "--dataset", "mnist", "--records", tmp_path)
    result = succeed(*arguments, "--output", path)
    assert path.read_text().startswith("% needs")
    assert result.stdout == ""
    assert str(path) in result.stderr


def test_a_loss_that_was_trained_has_a_row_without_being_named(tmp_path: Path) -> None:
    fill_table(RecordStore(tmp_path), "symmetric", "mnist", {("gce(q=0.5)", "0.8"): [61.5]})
    arguments = ("table", "symmetric", "--dataset", "mnist", "--records", tmp_path)
    rows = list(csv.DictReader(io.StringIO(labelproof(*arguments, "--format", "csv").stdout)))
    (row,) = [row for row in rows if row["method"] == "gce(q=0.5)" and row["n"] != "0"]
    assert (row["column"], row["mean"], row["paper_mean"]) == ("0.8", "61.5", "")
    assert rows[0]["method"] == "CE"
    chosen = labelproof(*arguments, "--methods", "ce gce(q=0.5)", "--columns", "0.8").stdout
    assert "| gce(q=0.5) | ours       | 61.50 (1)" in chosen
    assert "FL" not in chosen


def test_records_that_are_in_no_cell_for_their_epochs_are_told_of(tmp_path: Path) -> None:
    rehearsal = Configuration("mnist", noise="symmetric:0.4", epochs=1)
    RecordStore(tmp_path).add(made_record(rehearsal, 50.0))
    done = labelproof("table", "symmetric", "--dataset", "mnist", "--records", tmp_path)
    assert "no records yet" in done.stdout
    assert "1 record in" in done.stderr
    assert "another number of epochs" in done.stderr
    other = labelproof("table", "symmetric", "--dataset", "cifar10", "--records", tmp_path)
    assert other.stderr == ""


def test_the_summary_is_of_all_tables_for_a_reader_a_program_or_as_a_page(tmp_path: Path) -> None:
    told = succeed("table", "summary", "--records", RECORDS / "cifar100").output
    assert "| symmetric noise    | MNIST" in told
    assert "Cells without records:" in told
    fill_table(RecordStore(tmp_path), "symmetric", "mnist", {("CE", "0.8"): [22.0]})
    written = labelproof("table", "summary", "--records", tmp_path, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(written)))
    assert list(rows[0].values()) == ["symmetric", "mnist", "45", "1", "1"]
    assert list(rows[0]) == ["table", "dataset", "cells", "measured", "within"]
    page = tmp_path / "summary.html"
    succeed("table", "summary", "--records", tmp_path, "--output", page)
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "symmetric noise, MNIST: CE at 0.0, 0.2, 0.4, 0.6; FL" in text


def test_runs_are_compared_in_the_format_of_the_files_name(tmp_path: Path) -> None:
    digits = Configuration("digits", epochs=1)
    for loss, seed, accuracy in (("ce", 1, 81), ("ce", 2, 82), ("gce", 1, 91), ("gce", 2, 92)):
        made = made_record(replace(digits, loss=loss, seed=seed), accuracy)
        write_text(tmp_path / f"{loss}-{seed}" / "record.json", made.as_json())
        write_text(tmp_path / f"{loss}-{seed}" / "fingerprint.json", "{}")
    write_text(tmp_path / "later" / "fingerprint.json", "{}")
    ended = succeed("compare", tmp_path)
    assert ended.stderr == f"1 run not finished, left out: {tmp_path}/later\n"
    *_, first, second = ended.stdout.splitlines()
    assert first.startswith("| gce ")
    assert "| 91.50 ± 0.71 (2)  |" in first
    assert "| -10.00 ± 0.00 |" in second
    file = tmp_path / "mine.csv"
    succeed("compare", tmp_path, "--output", file)
    assert file.read_text().startswith("loss,measured_on,mean")
    refused = refusal("compare", tmp_path, "--output", tmp_path / "a.html")
    assert "expected one of .md, .tex, .csv" in refused


def test_a_figure_is_drawn_from_the_committed_records(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sparse.png"
    mnist = ("--dataset", "mnist", "--records", RECORDS / "mnist")
    assert str(path) in succeed("figure", "sparse", *mnist, "--output", path).stderr
    with Image.open(path) as image:
        assert image.width > 1000


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs on digits, and one that has just begun."""
    folder = tmp_path_factory.mktemp("runs")
    for loss in ("ce+sr", "ce"):
        train(Job(small(loss=loss, epochs=1), folder / loss))
    (folder / "begun").mkdir()
    return folder


def test_features_are_drawn_from_kept_runs(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "features.svg"
    arguments = ("figure", "tsne", "--runs", kept, "--output", path, "--device", "cpu")
    succeed(*arguments, "--images", "40")
    first = path.read_bytes()
    assert first.startswith(b"<?xml")
    succeed(*arguments, "--images", "40")
    assert path.read_bytes() == first
    refusal(*arguments, "--dataset", "mnist")


def test_features_are_what_the_last_layer_sees_of_the_same_images(kept: Path) -> None:
    digits = load_digits()
    chosen = sample_test_images(digits, 25)
    assert len(chosen) == 25
    assert np.all(np.diff(chosen) > 0)
    np.testing.assert_array_equal(chosen, sample_test_images(digits, 25))
    assert len(sample_test_images(digits, 10_000)) == len(digits.test)
    run = load_run(kept / "ce")
    features = see_features(run, digits, chosen)
    weights = run.network.state_dict()
    logits = features @ weights["head.weight"].numpy().T + weights["head.bias"].numpy()
    expected = run.probabilities(digits.test.array[chosen]).argmax(dim=1).numpy()
    np.testing.assert_array_equal(logits.argmax(axis=1), expected)
    made = embed(run, digits, chosen)
    assert made.points.shape == (25, 2)
    assert (made.method, made.noise) == ("ce", "symmetric:0.4")
    np.testing.assert_array_equal(made.labels, digits.test.labels[chosen])
