"""Who is measured on what it has learned from is told, also where that has another path."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import make_image, write_images
from trained import labelproof

TINY = ("--epochs", "1", "--device", "cpu", "--no-audit")
CNN = ("--network", "cnn4(width=4,hidden=8)", "--augmentation", "resized-crop:16")
NAMES = [f"{kind}/{number}.png" for kind in ("cat", "dog") for number in range(10)]


def fit(*arguments: str | Path) -> None:
    result = labelproof("fit", *arguments, *TINY)
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images, one of them broken, and a run on them."""
    folder = tmp_path_factory.mktemp("photos")
    write_images(folder / "photos", NAMES)
    (folder / "photos" / "cat" / "broken.png").write_bytes(b"oops")
    fit(folder / "photos", *CNN, "--output", folder / "run")
    return folder


def measured(run: Path, data: Path) -> tuple[dict[str, Any], str]:
    command = ("evaluate", run, "--data", data, "--device", "cpu", "--skip-unreadable")
    result = labelproof(*command, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), labelproof(*command).stdout


def test_copies_of_images_are_known_again(photos: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    for name in ("cat/1.png", "dog/2.png"):
        (new / name).parent.mkdir(parents=True)
        shutil.copy(photos / "photos" / name, new / f"{name[:3]}/copied.png")
        make_image(99 + len(name), size=(24, 16)).save(new / f"{name[:3]}/new.png")
    found, said = measured(photos / "run", new)
    assert found["learned_from"] is True
    assert found["learned_from_n"] == 2
    assert "trained or validated on 2 of 4 of these images" in said


def test_of_new_images_nothing_is_said(tmp_path: Path) -> None:
    write_images(tmp_path / "photos", NAMES)
    fit(tmp_path / "photos", *CNN, "--output", tmp_path / "run")
    for kind in ("cat", "dog"):
        (tmp_path / "new" / kind).mkdir(parents=True)
        make_image(len(NAMES) + len(kind), mode="RGB").save(tmp_path / "new" / kind / "1.png")
        make_image(ord(kind[0]), mode="RGB").save(tmp_path / "new" / kind / "2.png")
    (tmp_path / "new" / "cat" / "1.png").unlink()
    found, said = measured(tmp_path / "run", tmp_path / "new")
    assert found["learned_from"] is False
    assert "validated on" not in said
    # Without those that it learned from there is nothing to compare with.
    (tmp_path / "photos").rename(tmp_path / "moved")
    assert measured(tmp_path / "run", tmp_path / "new")[0]["learned_from"] is None


def test_rows_are_known_by_their_numbers(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows, labels = generator.normal(size=(40, 3)), np.arange(40) % 2
    np.savez(tmp_path / "rows.npz", x=rows, y=labels)
    mlp = ("--network", "mlp(hidden=8,depth=1)")
    fit(tmp_path / "rows.npz", *mlp, "--output", tmp_path / "run")
    np.savez(tmp_path / "copy.npz", x=rows[:30], y=labels[:30])
    found, said = measured(tmp_path / "run", tmp_path / "copy.npz")
    assert found["learned_from"] is True
    assert "trained or validated on 30 of 30 of these rows" in said
    np.savez(tmp_path / "new.npz", x=rows + 1, y=labels)
    assert measured(tmp_path / "run", tmp_path / "new.npz")[0]["learned_from"] is False
    # Some may be the same by chance.
    mixed = np.where(labels[:, np.newaxis] == 1, rows, rows + 1)
    np.savez(tmp_path / "mixed.npz", x=mixed, y=labels)
    found, said = measured(tmp_path / "run", tmp_path / "mixed.npz")
    assert (found["learned_from"], found["learned_from_n"]) == (None, 20)
    assert "20 of 40 of these rows" in said
