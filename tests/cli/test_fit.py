import csv
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from made_images import write_images
from trained import refusal, refused_in_one_line, succeed, write_things

from labelproof.audit.folder import Audit
from labelproof.training.export import KEY

SMALL = ("--epochs", "3", "--device", "cpu", "--network", "mlp(hidden=8,depth=1)")
CNN = ("--epochs", "2", "--device", "cpu", "--network", "cnn4(width=4,hidden=8)")
Printed = tuple[Path, str]


@pytest.fixture(scope="module")
def table_run(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """A run on a table, and what was printed."""
    folder = tmp_path_factory.mktemp("fit")
    table = write_things(folder / "things.csv")
    return folder / "run", succeed("fit", table, "--output", folder / "run").stdout


def test_a_table_needs_no_flag_and_is_learned(table_run: Printed) -> None:
    folder, printed = table_run
    assert "Data: 60 rows, 3 classes (kind 0 20, kind 1 20, kind 2 20)" in printed
    assert "Accuracy: 100.0% on 60 held-out labels" in printed
    assert "Labels: No label looks wrong" in printed
    assert f"Run: {folder} (blend of " in printed
    assert f"Next: labelproof predict {folder} NEW.csv" in printed
    # One screen, what matters first.
    assert [line.split(":")[0] for line in printed.splitlines()] == [
        *("Data", "Accuracy", "Labels", "Run", "Report", "Next")
    ]
    record = json.loads((folder / "record.json").read_text())
    assert record["curve"]["validation_accuracy"] == [100]
    assert sum(each["weight"] for each in record["candidates"].values()) == pytest.approx(1)


def test_a_finished_fit_is_told_again_and_other_settings_are_refused(table_run: Printed) -> None:
    folder, printed = table_run
    command = ("fit", folder.parent / "things.csv", "--output", folder)
    again = succeed(*command).stdout
    assert printed.endswith(again[again.index("Accuracy: ") :])
    for option, value, named in (("--seed", "2", "seed 1"), ("--epochs", "2", "network 'blend'")):
        refused = refusal(*command, option, value)
        assert "--fresh" in refused
        assert named in refused


def test_new_rows_are_read_by_the_columns_of_the_run(table_run: Printed, tmp_path: Path) -> None:
    folder, new = table_run[0], tmp_path / "new.csv"
    new.write_text("colour,comment,height,width\nred,x,0,0\nblue,y,-2,3\ngreen,z,-4,6\n")
    result = succeed("predict", folder, new, "--all")
    header, *rows = csv.reader(result.stdout.splitlines())
    assert header[:4] == ["path", "row", "label", "probability"]
    assert [row[1:3] for row in rows] == [[f"line {n + 2}", f"kind {n}"] for n in range(3)]
    for row in rows:
        assert sum(float(cell) for cell in row[4:]) == pytest.approx(1, abs=1e-4)
    new.write_text("label,colour,height,width\nkind 0,red,0,abc\nkind 1,blue,-2,3\n")
    measure = ("evaluate", folder, "--data", new)
    assert "'width': expected numbers, got 'abc' in line 2" in refusal(*measure)
    skipped = succeed(*measure, "--skip-unreadable")
    assert "got 'abc' in line 2; treated as missing" in skipped.stderr


def test_a_folder_of_images_of_mixed_sizes_and_modes_and_one_that_is_broken(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    for index, (size, mode) in enumerate([((40, 30), "RGB"), ((20, 50), "L"), ((33, 33), "RGBA")]):
        names = [f"{kind}/{index}-{number}.png" for kind in ("cat", "dog") for number in range(6)]
        write_images(photos, names, size=size, mode=mode)
    (photos / "cat" / "0-3.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    command = ("fit", photos, *CNN, "--augmentation", "resized-crop:16", "--output")
    result = succeed(*command, tmp_path / "run")
    assert "1 of 36 images cannot be read" in result.stderr
    assert "0-3.png" in result.stderr
    assert "Data: 35 images, 2 classes" in result.stdout
    predicted = succeed("predict", tmp_path / "run", photos / "dog")
    assert len(predicted.stdout.splitlines()) == 19
    assert "0-3.png" in refusal(*command, tmp_path / "other", "--strict")
    assert not (tmp_path / "other" / "record.json").exists()


def test_a_dry_run_says_what_would_be_done(tmp_path: Path) -> None:
    command = ("fit", write_things(tmp_path / "t.csv"), "--dry-run")
    assert 'network = "mlp' in succeed(*command, "--loss", "ce", "--device", "cpu").stdout
    blend = succeed(*command).stdout
    assert all(line.startswith("#") for line in blend.splitlines())
    assert "blended" in blend
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_parts_that_are_not_learned_from_are_named(tmp_path: Path) -> None:
    for part, images in (("train", 12), ("val", 3), ("test", 2)):
        names = [f"{part}/{label}/{i}.png" for label in ("cat", "dog") for i in range(images)]
        write_images(tmp_path, names)
    said = succeed("fit", tmp_path, *CNN, "--dry-run").stdout.splitlines()
    assert "# Measured on: 4 images of test, never learned from" in said
    assert "# Not used: 6 images of validation" in said
    data, others, plan, *_ = succeed("audit", tmp_path, *CNN, "--dry-run").stdout.splitlines()
    assert data.startswith("Data: 24 images, 2 classes")
    assert others == "Not audited: 6 images of validation, 4 images of test"
    assert plan.startswith("Cross-validation: ")


def test_too_few_rows_leave_no_folder(tmp_path: Path) -> None:
    command = ("fit", write_things(tmp_path / "t.csv", 4), *SMALL, "--output", tmp_path / "run")
    assert "validation: 0.1 of 4 training examples leaves none" in refusal(*command)
    assert not (tmp_path / "run").exists()
    write_things(tmp_path / "t.csv", 10)
    assert "on 1 held-out label" in succeed(*command).stdout


def test_the_loss_can_be_chosen_on_what_is_held_out(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = (*SMALL, "--loss", "auto", "--trials", "2", "--no-audit", "--output", run)
    command = ("fit", write_things(tmp_path / "t.csv"), *options)
    first = succeed(*command).stdout
    assert "agreement with the labels held out" in first
    assert "Chosen: " in first
    record = json.loads((run / "record.json").read_text())
    assert record["configuration"]["loss"] in ("ce", "gce(q=0.7)")
    assert len(json.loads((run / "tuning.json").read_text())["trials"]) == 2
    again = succeed(*command).stdout
    assert "agreement" not in again
    assert "Accuracy: " in again


Audited = tuple[tuple[str | Path, ...], str]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """A command that has fitted and audited, whose run is beside its table, and what it said."""
    folder = tmp_path_factory.mktemp("audited")
    table = write_things(folder / "t.csv")
    command = ("fit", table, *SMALL, "--output", folder / "run")
    printed = succeed(*command).stdout
    return command, printed[printed.index("Labels: ") :]


def test_an_exported_table_names_its_features(audited: Audited, tmp_path: Path) -> None:
    path, run = tmp_path / "model.pt2", audited[0][-1]
    result = succeed("export", run, "--output", path)
    names = ["width", "height", "colour=blue", "colour=red"]
    assert f"Features of a row, in order: {', '.join(names)}\n" in result.stdout
    notes = {KEY: ""}
    torch.export.load(path, extra_files=notes)
    assert json.loads(notes[KEY])["features"] == names


def test_stopped_before_its_page_the_page_is_made_by_the_same_command(audited: Audited) -> None:
    command, said = audited
    run = Path(command[-1])
    page, audit = run / "audit" / "report.html", run / "audit" / "audit.json"
    made = page.read_text()
    assert "Report: " in said
    for remove in (page, audit):
        remove.unlink()
        assert succeed(*command).stdout.endswith(said)
        assert page.read_text() == made
    # Of a run that was here before it says nothing about this one.
    past = (run / "record.json").stat().st_mtime_ns - 10**9
    os.utime(audit, ns=(past, past))
    page.write_text("of another run")
    assert succeed(*command).stdout.endswith(said)
    assert page.read_text() == made
    kept = page.stat().st_mtime_ns
    assert succeed(*command).stdout.endswith(said)
    assert page.stat().st_mtime_ns == kept


def test_what_is_damaged_is_not_passed_off_as_finished(audited: Audited) -> None:
    fitted, folder = audited[0], Path(audited[0][-1]).parent
    audit = ("audit", *fitted[1:-1], folder / "audit", "--folds", "2")
    succeed(*audit)
    objects = io.BytesIO()
    np.savez(objects, held=np.array([{}], dtype=object))
    for command, name, damaged in (
        (fitted, "run/fit.json", b"[1,2]"),
        (audit, "audit/audit.json", (folder / "audit/audit.json").read_bytes()[:300]),
        (audit, "audit/samples.npz", objects.getvalue()),
        (audit, "audit/settings.json", b"[1,2]"),
    ):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(damaged)
        said = refused_in_one_line(*command)
        assert "--fresh" in said
        assert Path(name).name in said
        assert "pickle" not in said
        (folder / name).write_bytes(whole)


def test_folders_that_are_not_its_own_are_left_alone(audited: Audited, tmp_path: Path) -> None:
    command, run = audited[0], audited[0][-1]
    table, photos, audit = command[1], tmp_path / "photos", tmp_path / "audit"
    photos.mkdir()
    (photos / "holiday.jpg").write_bytes(b"")
    for verb in (("fit",), ("audit",), ("train", "--data")):
        refused = refusal(*verb, table, *SMALL, "--output", photos)
        assert "expected an empty folder" in refused
        assert "which holds holiday.jpg" in refused
    assert [path.name for path in photos.iterdir()] == ["holiday.jpg"]
    assert "which holds audit, " in refusal("audit", table, *SMALL, "--output", run)
    succeed("audit", table, *SMALL, "--folds", "2", "--output", audit)
    assert "which holds audit.json" in refusal("fit", table, *SMALL, "--output", audit)


GERMAN = ("--decimal", ",", "--thousands", ".")


def customers(number: int) -> str:
    """A table whose label the amount tells, written as in Germany."""
    lines = ["customer_id;amount;plan;churned"]
    for index, amount in enumerate(np.random.default_rng(0).uniform(200, 2000, number)):
        written = f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))
        lines.append(f"C{index};{written};{'ab'[index % 2]};{'yes' if amount > 1000 else 'no'}")
    return "\n".join(lines)


def test_numbers_are_read_and_columns_dropped_as_in_training(tmp_path: Path) -> None:
    table, new, run = (tmp_path / name for name in ("customers.csv", "new.csv", "run"))
    table.write_text(customers(60))
    command = ("fit", table, *SMALL, *GERMAN, "--label", "churned", "--output", run)
    succeed(*command, "--drop", "PLAN", "--no-audit")
    new.write_text(customers(3))
    result = succeed("predict", run, new, "--id", "customer_id")
    header, *lines = csv.reader(result.stdout.splitlines())
    assert header == ["path", "row", "customer_id", "label", "probability"]
    assert [line[1:3] for line in lines] == [[f"line {n + 2}", f"C{n}"] for n in range(3)]
    # Without it, the table is as it was; and a column that was dropped need not be there.
    new.write_text("amount;x\n982,75;1\n")
    assert succeed("predict", run, new).stdout.startswith("path,row,label,probability\n")
    assert "did you mean 'amount'?" in refusal("predict", run, new, "--id", "amonut")
    new.write_text("amount\nnine\n")
    assert "'nine' in line 2" in refusal("predict", run, new)
    assert "--drop plan" in succeed(*command, "--drop", "plan", "--dry-run").stdout


def test_dropped_columns_are_not_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    rows = [f"{generator.normal():.3f},{label},{label}" for label in generator.integers(2, size=90)]
    Path("table.csv").write_text("\n".join(["size,leak,kind", *rows]) + "\n")
    label, run = ("--label", "kind", *SMALL), Path("run")
    longer = ("--epochs", "15", "--learning-rate", "0.05", "--folds", "2")
    succeed("audit", "table.csv", *label, *longer)
    succeed("audit", "table.csv", *label, *longer, "--drop", "LEAK", "--output", "blind")
    seen, unseen = (Audit.read(Path(name)) for name in ("table-audit", "blind"))
    assert unseen.options["drop"] == ["leak"]
    assert "drop" not in seen.options
    assert unseen.agreement.value < seen.agreement.value
    assert "--drop leak" in Path("blind/report.html").read_text()
    assert "leak" in refusal("audit", "table.csv", *label, "--drop", "leek")
    succeed("train", "--data", "table.csv", *label, "--drop", "leak", "--output", run)
    columns = json.loads((run / "model.json").read_text())["columns"]
    assert [column["name"] for column in columns["columns"]] == ["size"]
    succeed("evaluate", run, "--split", "train")
    succeed("audit", run)
    assert Audit.read(run / "audit").options["drop"] == ["leak"]
    assert "--drop: expected without a run" in refusal("audit", run, "--drop", "size")


def test_groups_are_kept_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    rows = [f"{generator.normal(row % 2):.4f},P{row // 4},{row % 2}" for row in range(120)]
    Path("visits.csv").write_text("\n".join(["pulse,patient,ill", *rows]) + "\n")
    table = ("visits.csv", "--label", "ill", *SMALL)
    group = (*table, "--group", "patient")
    planned = succeed("fit", *group, "--dry-run")
    assert "\n# Kept together: 30 groups by patient\n" in planned.stdout  # a comment in TOML
    fitted = succeed("fit", *group, "--output", "run")
    assert "Kept together: 30 groups by patient" in fitted.output
    with np.load("run/predictions.npz") as predictions:
        held = predictions["held"]
    assert sorted(held) == sorted(4 * patient + row for patient in {*held // 4} for row in range(4))
    assert json.loads(Path("run/fit.json").read_text())["asked"]["group"] == "patient"
    succeed("audit", "run", "--output", "again")
    # Cut in another way, it is another run.
    assert "holds a run of other data" in refusal("fit", *table, "--output", "run")
    audited = succeed("audit", *group, "--folds", "3")
    assert "Kept together: 30 groups by patient" in audited.output
    # The audit of the run asks about the same samples that were held out.
    for folder in ("run/audit", "again", "visits-audit"):
        assert Audit.read(Path(folder)).options["group"] == "patient"
    assert "--group patient" in Path("visits-audit/report.html").read_text()
    refused = refusal("audit", *group, "--folds", "31", "--output", "finer")
    assert "--folds: expected 2 to 30, the number of groups, got 31" in refused
    assert not Path("finer").exists()
    Path("one.csv").write_text("pulse,who,ill\n" + "".join(f"{i},ann,{i % 2}\n" for i in range(9)))
    for verb, said in (("audit", "--group: expected at least two"), ("fit", "at least 2")):
        assert said in refusal(verb, "one.csv", "--label", "ill", "--group", "who", *SMALL)
