from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from made_images import write_images

from labelproof.data import load_dataset
from labelproof.data.images import sample_names

FILES = ["cat/1.png", "cat/deep/er/2.png", "dog/3.png", "dog/4.png"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    write_images(tmp_path / "photos", FILES)
    return tmp_path / "photos"


def test_images_are_called_by_their_path_in_the_folder_or_beside_their_table(photos: Path) -> None:
    assert sample_names(load_dataset(photos).train, photos) == FILES
    assert sample_names(load_dataset(photos).train, f"{photos}/") == FILES
    table = photos.parent / "table.csv"
    rows = [f"photos/{name},{name[:3]}" for name in reversed(FILES)]
    table.write_text("path,label\n" + "\n".join(rows) + "\n")
    names = [f"photos/{name}" for name in reversed(FILES)]
    assert sample_names(load_dataset(table).train, table) == names


def test_rows_are_called_by_their_line_and_entries_by_their_index(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,label\n1,x\n\n2,y\n3,\n4,x\n5,y\n")
    with pytest.warns(UserWarning, match="without a label"):
        dataset = load_dataset(table, on_error="skip")
    assert sample_names(dataset.train, table) == ["line 2", "line 4", "line 6", "line 7"]
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 8, 8), np.uint8), y=np.array([0, 1, 0, 1]))
    names = sample_names(load_dataset(tmp_path / "a.npz").train, tmp_path / "a.npz")
    assert names == ["0", "1", "2", "3"]
    assert sample_names(load_dataset("digits").train, "digits")[-1] == "1346"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are always text")
def test_names_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    odd = os.fsdecode(b"cat/caf\xe9.png")
    write_images(tmp_path, [odd, *FILES])
    assert odd in sample_names(load_dataset(tmp_path).train, tmp_path)
