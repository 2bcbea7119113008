"""A finished run or audit whose files were damaged since is not passed off as finished."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof, labelproof_to_its_end

SMALL = ("--epochs", "2", "--device", "cpu", "--network", "mlp(hidden=8,depth=1)")
FOLDS = ("--folds", "2", "--output", "audit")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a run on it, and an audit of it."""
    folder = tmp_path_factory.mktemp("made") / "made"
    folder.mkdir()
    generator = np.random.default_rng(0)
    rows = [f"{generator.normal(4 * (row % 2)):.3f},{'ab'[row % 2]}" for row in range(60)]
    rows[4:8] = ["0.1,b", "0.2,b", "4.1,a", "4.2,a"]
    (folder / "t.csv").write_text("\n".join(["width,label", *rows]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (("fit", "t.csv", *SMALL), ("audit", "t.csv", *SMALL, *FOLDS)):
            result = labelproof(*command)
            assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, to work in."""
    shutil.copytree(made, tmp_path / "made")
    monkeypatch.chdir(tmp_path / "made")
    return tmp_path / "made"


def refused(*command: str) -> str:
    """What is said by a command that ends with 2: on the error stream a line, and else nothing."""
    ended = labelproof_to_its_end(*command)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "Finished before" not in ended.stdout
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert "pickle" not in ended.stderr
    return ended.stderr


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def objects(path: Path) -> None:
    np.savez(path, held=np.array([{}], dtype=object))


def text(path: Path) -> None:
    path.write_text("lost and found")


def a_list(path: Path) -> None:
    path.write_text("[1,2]")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model.json", cut),
        ("checkpoint/*.safetensors", cut),
        ("predictions.npz", cut),
        ("predictions.npz", text),
        ("predictions.npz", objects),
        ("predictions.npz", Path.unlink),
        ("fit.json", a_list),
    ],
)
def test_a_finished_run_that_is_damaged_is_said_to_be(
    here: Path, name: str, damage: Callable[[Path], None]
) -> None:
    for path in (here / "t-fit").glob(name):
        damage(path)
    said = refused("fit", "t.csv", *SMALL)
    assert "--fresh" in said
    assert Path(name).name.removeprefix("*") in said


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("audit.json", cut),
        ("samples.npz", cut),
        ("samples.npz", text),
        ("samples.npz", objects),
        ("settings.json", a_list),
    ],
)
def test_a_finished_audit_that_is_damaged_is_said_to_be(
    here: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(here / "audit" / name)
    said = refused("audit", "t.csv", *SMALL, *FOLDS)
    assert "--fresh" in said
    assert name in said
