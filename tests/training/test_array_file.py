from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labelproof.training.files import read_arrays


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:300])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(bytes(content))


def objects(path: Path) -> None:
    np.savez(path, held=np.array([{}], dtype=object))


def one_array(path: Path) -> None:
    with path.open("wb") as stream:
        np.save(stream, np.arange(3))


def other_arrays(path: Path) -> None:
    np.savez(path, logits=np.arange(3))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("lost and found")


@pytest.mark.parametrize("damage", [cut, flip, objects, one_array, other_arrays, empty, text])
def test_damage_is_said_in_a_line_that_names_the_file(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "predictions.npz"
    np.savez_compressed(path, held=np.arange(1000), logits=np.ones((50, 3)))
    damage(path)
    with pytest.raises(
        ValueError, match=r"^predictions\.npz: not a whole file of arrays"
    ) as caught:
        read_arrays(path, ["held"])
    assert "pickle" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_is_not_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "predictions.npz")
