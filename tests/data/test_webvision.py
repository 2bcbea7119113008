import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import make_image
from webvision_tree import SYNSETS, add_imagenet, make_tree

from labelproof.data.load import load_dataset
from labelproof.data.notices import DataWarning
from labelproof.data.published import IMAGENET_STATISTICS, known_dataset, load_webvision


def test_the_whole_path_from_jpeg_files_to_arrays(tmp_path: Path) -> None:
    dataset = load_webvision(make_tree(tmp_path, test="val_images"), num_classes=4)
    assert dataset.name == "webvision"
    cranes = "crane (n01443537)", "crane (n01491361)"
    assert dataset.class_names == ("tench", cranes[0], "great white shark", cranes[1])
    assert not dataset.clean
    assert (dataset.mean, dataset.std) == IMAGENET_STATISTICS
    assert np.bincount(dataset.train.labels).tolist() == [4, 4, 4, 4]
    assert np.bincount(dataset.test.labels).tolist() == [2, 2, 2, 2]
    assert dataset.image_shape == (3, 256, 360)
    image = dataset.train.images[5]
    wanted = np.asarray(make_image(5, size=(90, 64)).resize((360, 256))).transpose(2, 0, 1)
    assert np.abs(image.astype(int) - wanted).mean() < 10
    assert load_webvision(tmp_path, num_classes=5, short_side=None).image_shape == (3, 64, 90)


def test_imagenet_is_one_folder_a_synset(tmp_path: Path) -> None:
    make_tree(tmp_path)
    for place in ("imagenet", "imagenet/val"):
        synsets = add_imagenet(tmp_path / place)
        split: Any = load_webvision(tmp_path, num_classes=3).splits["imagenet"]
        assert all(image.shape == (3, 256, 384) for image in split.images)
        files = [Path(file) for file in split.images.files]
        assert [SYNSETS[label] for label in split.labels] == [file.parent.name for file in files]
        assert len(files) == sum(SYNSETS.index(synset) < 3 for synset in synsets)
        shutil.rmtree(tmp_path / place / SYNSETS[1])
        with pytest.raises(FileNotFoundError, match=r"imagenet: .*folder of n01443537"):
            load_webvision(tmp_path, num_classes=3)


def test_lists_and_images_that_are_missing_or_broken_are_named_or_left_out(tmp_path: Path) -> None:
    make_tree(tmp_path)
    for file, text, message in (
        ("val_filelist.txt", "val000001.jpg 5\n", "a label up to 4"),
        ("val_filelist.txt", "val000001.jpg 4\n", "no images of the first 3 classes"),
        ("train_filelist_google.txt", "google/q0000/x.jpg\n", "google.txt: expected a file and"),
        ("train_filelist_google.txt", "google/x.jpg cat\n", "google.txt: expected a file and a"),
        ("synsets.txt", "tench\n", r"synsets\.txt: expected different synsets"),
        ("synsets.txt", "n01440764 a\n\nn01440764 b\n", r"synsets\.txt: expected different"),
    ):
        path = tmp_path / "info" / file
        before = path.read_text()
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_webvision(tmp_path, num_classes=3)
        path.write_text(before)
    with pytest.raises(ValueError, match="num_classes: expected 2 to 5, got 50"):
        load_webvision(tmp_path, num_classes=50)
    (tmp_path / "google" / "q0000" / "photo 0_0.jpg").unlink()
    (tmp_path / "google" / "q0003" / "photo 1_1.jpg").write_bytes(b"")
    with pytest.raises(ValueError, match=r"2 of 30 images cannot be read: .*photo 0_0\.jpg: "):
        load_webvision(tmp_path, num_classes=5)
    with pytest.warns(DataWarning, match="2 of 30 images cannot be read: .*; left out"):
        dataset = load_webvision(tmp_path, num_classes=5, on_error="skip")
    assert np.bincount(dataset.train.labels).tolist() == [3, 3, 4, 4, 4]


def test_it_has_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="ask its publisher"):
        load_dataset("webvision", root=tmp_path)
    make_tree(tmp_path / "webvision", num_classes=50)
    for place, root in (("webvision", tmp_path), (tmp_path / "webvision", None)):
        with pytest.warns(DataWarning):  # of the classes that have no image in so small a tree
            dataset = load_dataset(place, root=root)
        assert (dataset.name, dataset.num_classes) == ("webvision", 50)
    assert dataset.train.images[0].shape[0] == 3
    with pytest.raises(ValueError, match="cannot be downloaded"):
        known_dataset("webvision")
