from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from made_images import write_images
from trained import labelproof

from labelproof.training.export import KEY

SMALL = ("--epochs", "3", "--device", "cpu", "--network", "mlp(hidden=8,depth=1)")
TINY = ("--epochs", "2", "--device", "cpu", "--network", "cnn4(width=4,hidden=8)")
TINY_CROP = (*TINY, "--augmentation", "resized-crop:16")


def write_table(path: Path, rows: int = 60, *, seed: int = 0) -> None:
    """Three classes that two of the columns tell apart."""
    generator = np.random.default_rng(seed)
    labels = np.arange(rows) % 3
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["width", "height", "colour", "label"])
        for label in labels:
            width, height = generator.normal([3 * label, -2 * label], 0.3)
            writer.writerow(
                [f"{width:.4f}", f"{height:.4f}", ["red", "blue"][label % 2], f"kind {label}"]
            )


@pytest.fixture(scope="module")
def table_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run on a table, and what was printed."""
    folder = tmp_path_factory.mktemp("fit")
    write_table(folder / "things.csv")
    result = labelproof("fit", folder / "things.csv", "--output", folder / "run")
    assert result.exit_code == 0, result.output
    return folder / "run", result.stdout


def test_a_table_needs_no_flag_and_is_learned(table_run: tuple[Path, str]) -> None:
    folder, printed = table_run
    assert "Data: 60 rows, 3 classes (kind 0 20, kind 1 20, kind 2 20)" in printed
    assert "Accuracy: 100.0% on 60 held-out labels" in printed
    assert "Labels: No label looks wrong" in printed
    assert f"Run: {folder} (blend of " in printed
    assert f"Next: labelproof predict {folder} NEW.csv" in printed
    # One screen, what matters first.
    assert [line.split(":")[0] for line in printed.splitlines()] == [
        *("Data", "Accuracy", "Labels", "Run", "Report", "Next"),
    ]
    record = json.loads((folder / "record.json").read_text())
    assert record["curve"]["validation_accuracy"] == [100]
    assert sum(each["weight"] for each in record["candidates"].values()) == pytest.approx(1)


def test_classes_that_differ_in_case_are_shown_before_anything_else(tmp_path: Path) -> None:
    names = ["cat", "Cat", "CAT", "dog", "Dog", "DOG"]
    rows = [f"{10 * kind + row % 7},{names[kind]}\n" for row in range(20) for kind in range(6)]
    (tmp_path / "pets.csv").write_text("size,label\n" + "".join(rows))
    result = labelproof("fit", tmp_path / "pets.csv", "--output", tmp_path / "run")
    assert result.exit_code == 0, result.output
    for spelled in ("'CAT' and 'Cat' and 'cat'", "'DOG' and 'Dog' and 'dog'"):
        assert f"the classes {spelled} differ only in case" in result.stderr
    assert result.stderr.count("write them alike") == 2
    assert result.stdout.startswith("Data: 120 rows, 6 classes (")
    assert len(result.stdout.splitlines()) <= 10


def test_new_rows_are_predicted_whatever_the_order_of_their_columns(
    table_run: tuple[Path, str], tmp_path: Path
) -> None:
    folder, _ = table_run
    (tmp_path / "new.csv").write_text(
        "colour,comment,height,width\nred,x,0,0\nblue,y,-2,3\ngreen,z,-4,6\n"
    )
    result = labelproof("predict", folder, tmp_path / "new.csv", "--all")
    assert result.exit_code == 0, result.output
    header, *rows = csv.reader(result.stdout.splitlines())
    assert header[:4] == ["path", "row", "label", "probability"]
    assert [row[1:3] for row in rows] == [
        *(["line 2", "kind 0"], ["line 3", "kind 1"], ["line 4", "kind 2"]),
    ]
    for row in rows:
        assert sum(float(cell) for cell in row[4:]) == pytest.approx(1, abs=1e-4)


def test_a_finished_fit_is_told_again_and_other_settings_are_refused(
    table_run: tuple[Path, str],
) -> None:
    folder, printed = table_run
    table = folder.parent / "things.csv"
    again = labelproof("fit", table, "--output", folder)
    assert again.exit_code == 0
    assert printed.endswith(again.stdout[again.stdout.index("Accuracy: ") :])
    for other, named in ((("--seed", "2"), "seed 1"), (("--epochs", "2"), "network 'blend'")):
        refused = labelproof("fit", table, "--output", folder, *other)
        assert "--fresh" in str(refused.exception)
        assert named in str(refused.exception)


def test_a_folder_of_images_of_mixed_sizes_and_modes_and_one_that_is_broken(
    tmp_path: Path,
) -> None:
    photos = tmp_path / "photos"
    for index, (size, mode) in enumerate([((40, 30), "RGB"), ((20, 50), "L"), ((33, 33), "RGBA")]):
        names = [f"{kind}/{index}-{number}.png" for kind in ("cat", "dog") for number in range(6)]
        write_images(photos, names, size=size, mode=mode)
    (photos / "cat" / "0-3.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    result = labelproof("fit", photos, *TINY_CROP, "--output", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "1 of 36 images cannot be read" in result.stderr
    assert "0-3.png" in result.stderr
    assert "Data: 35 images, 2 classes" in result.stdout
    predicted = labelproof("predict", tmp_path / "run", photos / "dog")
    assert predicted.exit_code == 0, predicted.output
    assert len(predicted.stdout.splitlines()) == 19
    strict = labelproof("fit", photos, *TINY_CROP, "--output", tmp_path / "other", "--strict")
    assert "0-3.png" in str(strict.exception)
    assert not (tmp_path / "other" / "record.json").exists()


def test_a_dry_run_says_what_would_be_done(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv")
    result = labelproof("fit", tmp_path / "t.csv", "--dry-run", "--loss", "ce", "--device", "cpu")
    assert result.exit_code == 0
    assert 'network = "mlp' in result.stdout
    blend = labelproof("fit", tmp_path / "t.csv", "--dry-run")
    assert all(line.startswith("#") for line in blend.stdout.splitlines())
    assert "blended" in blend.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


BAD = {
    "nothing": ("", "expected"),
    "header only": ("a,b,label\n", "row"),
    "one class": ("a,label\n" + "1,x\n2,x\n3,x\n", "class"),
    "an id as the label": ("a,label\n" + "".join(f"{n},{n * 7919}\n" for n in range(50)), "label"),
    "no label": ("a,b,label\n1,2,x\n3,4,\n5,6,y\n1,1,x\n", "label"),
    "infinite": ("a,label\n1,x\ninf,y\n2,x\n3,y\n", "a"),
    "mixed": (
        "a,label\n" + "".join(f"{n}.5,{'xy'[n % 2]}\n" for n in range(40)) + "oops,x\n",
        "oops",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_table_that_cannot_be_used_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, said = BAD[name]
    (tmp_path / "t.csv").write_text(content)
    result = labelproof("fit", tmp_path / "t.csv", *SMALL, "--strict", "--output", tmp_path / "run")
    assert result.exit_code == 1
    assert isinstance(result.exception, ValueError)
    assert said in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run" / "record.json").exists()


def test_the_loss_can_be_chosen_on_what_is_held_out(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", 90)
    command = ("fit", tmp_path / "t.csv", *SMALL, "--loss", "auto", "--trials", "2")
    result = labelproof(*command, "--output", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert "agreement with the labels held out" in result.stdout
    assert "Chosen: " in result.stdout
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["configuration"]["loss"] in ("ce", "gce(q=0.7)")
    assert len(json.loads((tmp_path / "run" / "tuning.json").read_text())["trials"]) == 2
    again = labelproof(*command, "--output", tmp_path / "run")
    assert again.exit_code == 0, again.output
    assert "agreement" not in again.stdout
    assert "Accuracy: " in again.stdout


def test_cells_that_are_not_numbers_are_refused_where_a_run_is_measured(
    table_run: tuple[Path, str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("label,colour,height,width\nkind 0,red,0,abc\nkind 1,blue,-2,3\n")
    refused = labelproof("evaluate", table_run[0], "--data", bad)
    assert "'width': expected numbers, got 'abc' in line 2" in str(refused.exception)
    skipped = labelproof("evaluate", table_run[0], "--data", bad, "--skip-unreadable")
    assert skipped.exit_code == 0
    assert "got 'abc' in line 2; treated as missing" in skipped.stderr


def test_stopped_before_its_page_the_page_is_made_by_the_same_command(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv")
    run = tmp_path / "run"
    command = ("fit", tmp_path / "t.csv", *SMALL, "--output", run)
    first = labelproof(*command).stdout
    page, audit = run / "audit" / "report.html", run / "audit" / "audit.json"
    made = page.read_text()
    said = first[first.index("Labels: ") :]
    assert "Report: " in said
    for remove in (page, audit):
        remove.unlink()
        again = labelproof(*command)
        assert again.stdout.endswith(said)
        assert page.read_text() == made
    # Of a run that was here before it says nothing about this one.
    past = (run / "record.json").stat().st_mtime_ns - 10**9
    os.utime(audit, ns=(past, past))
    page.write_text("of another run")
    assert labelproof(*command).stdout.endswith(said)
    assert page.read_text() == made
    kept = page.stat().st_mtime_ns
    assert labelproof(*command).stdout.endswith(said)
    assert page.stat().st_mtime_ns == kept


def test_too_few_rows_leave_no_folder(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", 4)
    result = labelproof("fit", tmp_path / "t.csv", *SMALL, "--output", tmp_path / "run")
    assert "--validation: 0.1 of 4 rows leaves none" in str(result.exception)
    assert "a larger share, or add examples" in str(result.exception)
    assert not (tmp_path / "run").exists()
    write_table(tmp_path / "t.csv", 10)
    result = labelproof("fit", tmp_path / "t.csv", *SMALL, "--output", tmp_path / "run")
    assert "on 1 held-out label" in result.stdout


def test_an_exported_table_names_its_features(table_run: tuple[Path, str], tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    result = labelproof("export", table_run[0], "--format", "torch-export", "--output", path)
    names = ["width", "height", "colour=blue", "colour=red"]
    assert f"Features of a row, in order: {', '.join(names)}\n" in result.stdout
    notes = {KEY: ""}
    torch.export.load(path, extra_files=notes)
    assert json.loads(notes[KEY])["features"] == names
