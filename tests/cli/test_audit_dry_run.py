"""What `labelproof audit --dry-run` says, and that it leaves no trace."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from trained import labelproof

from labelproof.data.images import ImageFiles
from labelproof.data.load import Reading
from labelproof.verbs import budget
from labelproof.verbs.cross_validation import CrossValidationPlan
from labelproof.verbs.inputs import Request
from labelproof.verbs.progress import Reporter

SMALL = ("--network", "mlp(hidden=8,depth=1)", "--epochs", "3", "--device", "cpu")


def below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def write_table(folder: Path, rows: int = 120) -> Path:
    generator = np.random.default_rng(0)
    with (folder / "things.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["width", "height", "class"])
        for number in range(rows):
            width, height = generator.normal([3 * (number % 3), 0], 0.3).tolist()
            writer.writerow([width, height, f"kind {number % 3}"])
    return folder / "things.csv"


def test_it_says_what_would_be_done_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = below(tmp_path)
    result = labelproof("audit", path, *SMALL, "--dry-run")
    assert result.exit_code == 0, result.output
    data, plan, duration, folder, end = result.stdout.splitlines()
    assert data == "Data: 120 rows, 3 classes (kind 0 40, kind 1 40, kind 2 40)"
    assert plan == (
        "Cross-validation: 5 networks (mlp(depth=1,hidden=8)), each for 3 epochs on 4 of 5 parts, "
        "gce(q=0.7)"
    )
    assert duration == "Time: less than a minute on cpu, by its first steps"
    assert folder == "Folder: things-audit"
    assert end == "A dry run; nothing was written."
    assert below(tmp_path) == before
    real = labelproof("audit", path, *SMALL)
    assert real.stdout.splitlines()[:2] == [data, plan]


@pytest.mark.parametrize("image_memory", [None, 0])
def test_a_forecast_is_of_all_samples_folds_and_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image_memory: int | None
) -> None:
    for label, shade in (("dark", 40), ("light", 200)):
        (tmp_path / label).mkdir()
        for number in range(20):
            image = Image.new("RGB", (20, 20), (shade + number,) * 3)
            image.save(tmp_path / label / f"{number}.png")
    request = Request(
        str(tmp_path),
        Reading(),
        {
            "network": "cnn4(width=4,hidden=16)",
            "augmentation": "resized-crop:16",
            "epochs": 7,
            "batch_size": 5,
        },
        tmp_path / "audit",
        device="cpu",
        workers=0,
        image_memory=image_memory,
    )
    plan = CrossValidationPlan(request, folds=3, reporter=Reporter())
    trained_on: list[type] = []

    def look(dataset: Any, *rest: Any, **settings: Any) -> Any:
        prepared = decode(dataset, *rest, **settings)
        trained_on.append(type(prepared.splits["train"].images))
        return prepared

    ticks = iter(range(1000))
    decode = budget.decode_images
    monkeypatch.setattr(budget, "decode_images", look)
    # Of this module alone: the engine looks at the clock as well.
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr(budget, "time", clock)
    seconds = plan._forecast(Reporter())
    assert trained_on == [ImageFiles if image_memory == 0 else np.ndarray]
    # A second, by this clock, for 20 of 40 images before the training, and one in an epoch of it.
    assert seconds == 40 / 20 + 40 / 20 * 2 * 7


def test_an_audit_that_is_there_is_told_or_refused_as_it_would_be(tmp_path: Path) -> None:
    path, folder = write_table(tmp_path), tmp_path / "audit"
    command = ("audit", path, *SMALL, "--folds", "2", "--output", folder)
    assert labelproof(*command).exit_code == 0
    before = below(tmp_path)
    again = labelproof(*command, "--dry-run")
    assert "Time: what is left of an audit that was started or finished before" in again.stdout
    assert f"Folder: {folder} (an audit is there already)" in again.stdout
    fresh = labelproof(*command, "--dry-run", "--fresh")
    assert f"Folder: {folder} (an audit is removed first)" in fresh.stdout
    other = labelproof(*command, "--seed", "9", "--dry-run")
    assert "holds an audit with other settings" in str(other.exception)
    assert below(tmp_path) == before
