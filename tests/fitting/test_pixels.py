from pathlib import Path

import numpy as np
import pytest
from made_images import make_image, write_images

from labelproof.data.image_folder import load_folder
from labelproof.data.images import ImageFiles, UnreadableImageError
from labelproof.fitting.pixels import bring_to_memory, bring_to_size


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index in range(6):
        size = [(90, 60), (60, 90), (64, 64)][index % 3]
        write_images(tmp_path, [f"{'ab'[index % 2]}/{index}.png"], size=size)
        make_image(index, size=size).save(tmp_path / f"{'ab'[index % 2]}/{index}.png")
    return tmp_path


def test_all_images_become_squares_that_fit_in_memory(folder: Path) -> None:
    dataset = load_folder(folder)
    told: list[tuple[int, int]] = []
    found = bring_to_size(dataset, 28, memory=1 << 20, progress=lambda *said: told.append(said))
    assert found.train.array.shape == (6, 3, 32, 32)
    assert found.train.array.dtype == np.uint8
    assert np.array_equal(found.train.labels, dataset.train.labels)
    assert told[-1] == (6, 6)
    assert found.mean == dataset.mean


def test_too_many_for_memory_stay_files_of_that_size(folder: Path) -> None:
    found = bring_to_size(load_folder(folder), 28, memory=6 * 3 * 32 * 32 - 1)
    images = found.train.images
    assert isinstance(images, ImageFiles)
    assert min(images[0].shape[1:]) == 32


def test_an_image_that_went_bad_is_named(folder: Path) -> None:
    dataset = load_folder(folder)
    (folder / "a" / "2.png").write_bytes(b"gone")
    with pytest.raises(UnreadableImageError, match=r"2\.png"):
        bring_to_size(dataset, 28, memory=1 << 20)


def test_files_of_one_size_become_an_array_where_they_fit(tmp_path: Path) -> None:
    write_images(tmp_path, ["a/1.png", "a/2.png", "b/1.png"], size=(12, 9))
    dataset = load_folder(tmp_path)
    found = bring_to_memory(dataset, memory=3 * 3 * 9 * 12)
    assert found.train.array.shape == (3, 3, 9, 12)
    for index in range(3):
        assert np.array_equal(found.train.array[index], dataset.train.images[index])
    assert bring_to_memory(dataset, memory=3 * 3 * 9 * 12 - 1) is dataset
