"""What `predict --all` writes is matched with the data it is about, in whatever order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from trained import labelproof

from labelproof.audit import Audit

SMALL = ("--network", "mlp(hidden=8,depth=1)", "--device", "cpu")


def run(*arguments: str | Path) -> None:
    result = labelproof(*arguments)
    assert result.exit_code == 0, result.output
    assert "matched by their order" not in result.stderr


def reverse(table: Path) -> Path:
    header, *lines = table.read_text().splitlines()
    other = table.with_name("reversed.csv")
    other.write_text("\n".join([header, *reversed(lines)]) + "\n")
    return other


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    generator = np.random.default_rng(0)
    for name, shade in (("10", 40), ("9", 200)):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(12):
            pixels = generator.integers(shade - 30, shade + 30, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / name / f"{number}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run("fit", "photos", *SMALL, "--epochs", "2", "--output", "run")
        (folder / "tables").mkdir()
        run("predict", "run", "photos", "--all", "--output", "tables/p.csv")
    return folder


def agreement(data: str | Path, table: str | Path, output: Path) -> float:
    run("audit", data, "--probabilities", table, "--output", output)
    return Audit.read(output).agreement.value


def test_predictions_on_images_are_found_by_their_paths(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(photos)
    assert agreement("photos", "tables/p.csv", tmp_path / "a") == 1
    assert agreement("photos", reverse(photos / "tables" / "p.csv"), tmp_path / "b") == 1
    # From elsewhere, with the table where the paths in it begin.
    moved = photos / "p.csv"
    moved.write_bytes((photos / "tables" / "p.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert agreement(photos / "photos", moved, tmp_path / "c") == 1
    other = tmp_path / "p.csv"
    other.write_bytes(moved.read_bytes())
    result = labelproof("audit", photos / "photos", "--probabilities", other)
    assert "expected names of samples of" in str(result.exception)
    assert "got photos/10/0.png" in str(result.exception)


def test_images_in_a_list_are_found_by_their_ids(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(photos)
    files = [
        (f"photos/{name}/{n}.png", name, f"{name}00{n}") for name in ("9", "10") for n in range(12)
    ]
    lines = [",".join(entry) for entry in files]
    (photos / "list.csv").write_text("\n".join(["path,label,ID", *lines]))
    sure = {"9": "0.9,0.1", "10": "0.1,0.9"}
    lines = [f"{key}.0,{sure[name]}" for _, name, key in reversed(files)]
    (photos / "ids.csv").write_text("\n".join(["id,9,10", *lines]))
    assert agreement("list.csv", "ids.csv", tmp_path / "a") == 1
    assert agreement("list.csv", "tables/p.csv", tmp_path / "b") == 1


def test_predictions_on_rows_are_found_by_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{number % 2 * 4 + number / 99},{'ab'[number % 2]}" for number in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["size,kind", *lines]))
    run("fit", "t.csv", "--label", "kind", *SMALL, "--epochs", "20", "--output", "run")
    run("predict", "run", "t.csv", "--all", "--output", "p.csv")
    options = ("--label", "kind", "--output")
    run("audit", "t.csv", "--probabilities", "p.csv", *options, "a")
    run("audit", "t.csv", "--probabilities", reverse(tmp_path / "p.csv"), *options, "b")
    straight, turned = (Audit.read(tmp_path / name) for name in "ab")
    assert straight.agreement.value > 0.9
    assert np.array_equal(straight.findings.score, turned.findings.score)
    # A line is in any table, so whose it is may be asked.
    (tmp_path / "other.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    result = labelproof("audit", "other.csv", "--probabilities", "p.csv", *options, "c")
    assert result.exit_code == 0, result.output
    assert "p.csv: its rows are about t.csv, and taken for those of" in result.stderr
