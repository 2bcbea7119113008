from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import make_image

from labelproof.data import Dataset
from labelproof.data.dataset import Split
from labelproof.data.image_folder import load_folder
from labelproof.data.table import dataset_from_rows
from labelproof.fitting.recipe import check_feasible, choose_recipe


def table() -> Dataset:
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    return dataset_from_rows("table", {"train": Split(rows, np.arange(40) % 2)}, "ab", None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"augmentation": "flip"}, "augmentation: expected none for the rows of a table, got flip"),
        ({"network": "cnn8"}, "image_shape: expected"),
        ({"network": "os:path"}, "network: expected 'os:path' to be a function or class"),
        ({"noise": "human:worse"}, "human: expected the file of human:worse"),
        ({"noise": "asymmetric:0.4"}, "noise: no classes of 'table' are known to be confused"),
    ],
)
def test_what_a_training_refuses_is_refused_before(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        check_feasible(table(), choose_recipe(table(), **given))


def test_images_of_several_sizes_need_crops(tmp_path: Path) -> None:
    for label in "ab":
        (tmp_path / label).mkdir()
        for side in (20, 24, 30):
            make_image(side + ord(label), size=(side, side)).save(tmp_path / label / f"{side}.png")
    photos = load_folder(tmp_path)
    check_feasible(photos, choose_recipe(photos))
    with pytest.raises(ValueError, match="augmentation: expected resized-crop:SIDE for images of"):
        check_feasible(photos, choose_recipe(photos, augmentation="flip"))
    with pytest.raises(ValueError, match="expected a height and width of at least 8"):
        check_feasible(photos, choose_recipe(photos, augmentation="resized-crop:2"))
