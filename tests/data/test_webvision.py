import shutil
from pathlib import Path

import numpy as np
import pytest
from made_images import make_image
from webvision_tree import SYNSETS, add_imagenet, make_tree

from labelproof.data import Dataset
from labelproof.data.catalogue import known_dataset
from labelproof.data.loading import load_dataset
from labelproof.data.notices import DataWarning
from labelproof.data.webvision import IMAGENET_STATISTICS, load_webvision


@pytest.mark.parametrize(
    ("train", "test"), [("", "val_images_256"), ("resized_images", "val_images"), ("train", "val")]
)
def test_the_whole_path_from_jpeg_files_to_arrays(train: str, test: str, tmp_path: Path) -> None:
    dataset = load_webvision(make_tree(tmp_path, train=train, test=test), num_classes=4)
    assert dataset.name == "webvision"
    assert dataset.class_names == (
        "tench",
        "crane (n01443537)",
        "great white shark",
        "crane (n01491361)",
    )
    assert not dataset.clean
    assert (dataset.mean, dataset.std) == IMAGENET_STATISTICS
    assert np.bincount(dataset.train.labels).tolist() == [4, 4, 4, 4]
    assert np.bincount(dataset.test.labels).tolist() == [2, 2, 2, 2]
    assert dataset.image_shape == (3, 256, 360)
    image = dataset.train.images[5]
    wanted = np.asarray(make_image(5, size=(90, 64)).resize((360, 256))).transpose(2, 0, 1)
    assert np.abs(image.astype(int) - wanted).mean() < 10
    assert load_webvision(tmp_path, num_classes=5, short_side=None).image_shape == (3, 64, 90)


def imagenet_split(dataset: Dataset) -> list[tuple[str, int]]:
    split = dataset.splits["imagenet"]
    assert all(image.shape == (3, 256, 384) for image in split.images)  # type: ignore[union-attr]
    names = [Path(file).name for file in split.images.files]  # type: ignore[union-attr]
    return sorted(zip(names, split.labels.tolist(), strict=True))


def test_imagenet_by_folders(tmp_path: Path) -> None:
    make_tree(tmp_path)
    synsets = add_imagenet(tmp_path / "imagenet" / "val", flat=False)
    found = imagenet_split(load_webvision(tmp_path, num_classes=5))
    assert [label for _, label in found] == [SYNSETS.index(synset) for synset in synsets]
    shutil.rmtree(tmp_path / "imagenet" / "val" / SYNSETS[1])
    with pytest.raises(FileNotFoundError, match=r"no folder in .* for n01443537"):
        load_webvision(tmp_path, num_classes=5)


@pytest.mark.parametrize(
    "name",
    ["val.txt", "LOC_val_solution.csv", "imagenet_2012_validation_synset_labels.txt"],
)
def test_imagenet_by_a_list(name: str, tmp_path: Path) -> None:
    make_tree(tmp_path / "web")
    images = tmp_path / "ILSVRC" / "Data" / "CLS-LOC" / "val"
    synsets = add_imagenet(images, flat=True)
    files = [f"ILSVRC2012_val_{number:08d}" for number in range(1, 11)]
    pairs = list(zip(files, synsets, strict=True))
    lists = {
        "val.txt": [f"{file}.JPEG {sorted(SYNSETS).index(synset)}" for file, synset in pairs],
        "LOC_val_solution.csv": ["ImageId,PredictionString"]
        + [f"{file},{synset} 1 2 3 4" for file, synset in reversed(pairs)],
        "imagenet_2012_validation_synset_labels.txt": synsets,
    }
    with pytest.raises(FileNotFoundError, match=r"expected a list of labels .*val_labels\.txt"):
        load_webvision(tmp_path / "web", imagenet=tmp_path / "ILSVRC", num_classes=3)
    (tmp_path / "ILSVRC" / name).write_text("\n".join(lists[name]))
    dataset = load_webvision(tmp_path / "web", imagenet=tmp_path / "ILSVRC", num_classes=3)
    wanted = [SYNSETS.index(synset) for synset in synsets]
    assert [label for _, label in imagenet_split(dataset)] == [c for c in wanted if c < 3]


def test_classes_of_imagenet_count_by_synset_whatever_webvisions_order(tmp_path: Path) -> None:
    make_tree(tmp_path)
    lines = (tmp_path / "info" / "synsets.txt").read_text().splitlines()
    (tmp_path / "info" / "synsets.txt").write_text("\n".join(reversed(lines)))
    add_imagenet(tmp_path / "imagenet", flat=True)
    (tmp_path / "imagenet" / "val.txt").write_text("ILSVRC2012_val_00000001.JPEG 0\n")
    # Class 0 of ImageNet is the tench, which this list has as its last class.
    assert imagenet_split(load_webvision(tmp_path, num_classes=5)) == [
        ("ILSVRC2012_val_00000001.JPEG", 4)
    ]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("synsets.txt", "tench\n", r"synsets\.txt:1: expected a new synset such as"),
        ("synsets.txt", "n01440764 a\n\nn01440764 b\n", r"synsets\.txt:3: expected a new synset"),
        ("train_filelist_google.txt", "google/q0000/x.jpg\n", "google.txt:1: expected a file and"),
        ("train_filelist_google.txt", "google/x.jpg cat\n", "google.txt:1: expected a file and a"),
        ("val_filelist.txt", "val000001.jpg 5\n", "a label from 0 to 4, got 'val000001.jpg 5'"),
        ("val_filelist.txt", "val000001.jpg 4\n", "no images of the first 3 classes"),
    ],
)
def test_lists_of_another_form_are_refused(
    file: str, text: str, message: str, tmp_path: Path
) -> None:
    make_tree(tmp_path)
    (tmp_path / "info" / file).write_text(text)
    with pytest.raises(ValueError, match=message):
        load_webvision(tmp_path, num_classes=3)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    make_tree(tmp_path)
    with pytest.raises(ValueError, match="num_classes: expected 2 to 5, got 50"):
        load_webvision(tmp_path, num_classes=50)
    with pytest.raises(FileNotFoundError, match="imagenet: expected folders such as n01440764 or"):
        load_webvision(tmp_path, num_classes=5, imagenet=tmp_path / "info")
    (tmp_path / "info" / "synsets.txt").write_bytes(b"n01440764 caf\xe9\n")
    with pytest.raises(ValueError, match=r"synsets\.txt: expected text in UTF-8"):
        load_webvision(tmp_path, num_classes=5)


def test_images_that_are_gone_or_broken_are_fatal_or_left_out(tmp_path: Path) -> None:
    make_tree(tmp_path)
    (tmp_path / "google" / "q0000" / "photo 0_0.jpg").unlink()
    (tmp_path / "google" / "q0003" / "photo 1_1.jpg").write_bytes(b"")
    with pytest.raises(ValueError, match=r"2 of 30 images cannot be read: .*photo 0_0\.jpg: there"):
        load_webvision(tmp_path, num_classes=5)
    with pytest.warns(DataWarning, match="2 of 30 images cannot be read and are left out"):
        dataset = load_webvision(tmp_path, num_classes=5, on_error="skip")
    assert np.bincount(dataset.train.labels).tolist() == [3, 3, 4, 4, 4]
    shutil.rmtree(tmp_path / "google")
    with pytest.raises(FileNotFoundError, match=r"google\.txt: the first image is in none of"):
        load_webvision(tmp_path, num_classes=5)


def test_lists_of_imagenet_of_another_form_are_refused(tmp_path: Path) -> None:
    make_tree(tmp_path)
    add_imagenet(tmp_path / "imagenet", flat=True)
    (tmp_path / "imagenet" / "val.txt").write_text("ILSVRC2012_val_00000001.JPEG 490\n")
    with pytest.raises(ValueError, match=r"val\.txt:1: expected a file and a class from 0 to 4 or"):
        load_webvision(tmp_path, num_classes=5)
    (tmp_path / "imagenet" / "val.txt").write_text("ILSVRC2012_val_00000001.JPEG n09999999\n")
    with pytest.raises(ValueError, match=r"val\.txt: none of the wanted classes is in it"):
        load_webvision(tmp_path, num_classes=5)


def test_it_has_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="ask its publisher"):
        load_dataset("webvision", root=tmp_path)
    info = make_tree(tmp_path / "webvision") / "info"
    with (info / "synsets.txt").open("a") as stream:
        stream.writelines(f"n{number:08d} thing {number}\n" for number in range(45))
    with pytest.warns(DataWarning):  # of the classes that have no image in so small a tree
        dataset = load_dataset("webvision", root=tmp_path)
    assert (dataset.name, dataset.num_classes) == ("webvision", 50)
    assert dataset.train.images[0].shape[0] == 3
    with pytest.raises(ValueError, match="cannot be downloaded"):
        known_dataset("webvision")
