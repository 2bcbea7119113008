import gzip
import itertools
import re
import shutil
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
from cifar_files import cifar10_records, write_binary, write_python
from made_images import make_image, write_images
from shared_data import shared_data
from tiny_dataset import tiny_contents, tiny_files, tiny_idx
from webvision_tree import SYNSETS, add_imagenet, make_tree

from labelproof.data import (
    DATASETS,
    data_root,
    idx_bytes,
    load_coarse_labels,
    load_dataset,
    load_digits,
    load_webvision,
    read_idx,
    verify_dataset,
)
from labelproof.data.notices import DataWarning
from labelproof.data.published import IMAGENET_STATISTICS, known_dataset


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LABELPROOF_DATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_where_the_root_of_the_data_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_root().parent == Path(platformdirs.user_cache_dir())
    if sys.platform.startswith("linux"):
        assert data_root() == tmp_path / ".cache" / "labelproof"
        monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
        assert data_root() == Path("/cache/labelproof")
    monkeypatch.setenv("LABELPROOF_DATA", "~/data")
    assert data_root() == tmp_path / "data"
    assert data_root("elsewhere") == Path("elsewhere")


IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def test_idx_files_come_back_gzipped_or_not_whatever_their_name(tmp_path: Path) -> None:
    for shape in ((5,), (2, 3, 4), (0,), (0, 28, 28), (1, 1, 1, 1)):
        array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        content = idx_bytes(array)
        for written in (content, gzip.compress(content)):
            (tmp_path / "file").write_bytes(written)
            read = read_idx(str(tmp_path / "file"))
            assert read.dtype == np.uint8
            assert read.flags.writeable
            np.testing.assert_array_equal(read, array)


def test_a_damaged_idx_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    whole = gzip.compress(idx_bytes(IMAGES))
    changed = bytearray(whole)
    changed[-6] ^= 255
    for content, message in (
        (b"", "00 00 08, got ''"),
        (b"\0\0", "00 00 08, got '00 00'"),
        (b"<!DOCTYPE html>", "web page"),
        (b"\0\0\x0d\x01\0\0\0\1\0\0\0\0", "00 00 08, got '00 00 0d 01'"),
        (b"\0\0\x08\x00", "00 00 08"),
        (b"\0\0\x08\x03\0\0\0\1", "00 00 08"),
        (idx_bytes(IMAGES)[:-5], "expected 24 bytes .*2 x 3 x 4.*, got 19"),
        (idx_bytes(IMAGES) + b"x", "expected 24 bytes .*, got 25"),
        # More than such a file can hold: nothing is allocated for it.
        (struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "got 0"),
        *((part, "damaged") for part in (whole[:10], whole[:-9], whole[:-1], bytes(changed))),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"^{path}: .*{message}"):
            read_idx(path)


def test_the_table_is_consistent() -> None:
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert len(set(dataset.class_names)) == len(dataset.class_names)
        channels = dataset.image_shape[0] if dataset.files else 0
        assert len(dataset.mean) == len(dataset.std) == channels
        for file in dataset.files:
            assert all(re.match("https://.*/$", folder) for folder in file.folders)
        for layout in dataset.layouts:
            assert layout.folders[0].startswith(name)
        if dataset.checksums:
            assert set(dataset.checksums) == {*dataset.layouts[0].files}
        sums = [*dataset.checksums.values(), *(file.sha256 for file in dataset.files)]
        assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in sums)
        assert len(set(sums)) == len(sums)
    names = DATASETS["cifar100"].class_names
    assert list(names) == sorted(names)
    assert (len(names), names[0], names[50], names[99]) == (100, "apple", "mouse", "worm")


def test_the_digits_are_split_the_same_way_each_time_and_stratified() -> None:
    digits, again = load_digits(), load_digits()
    np.testing.assert_array_equal(digits.train.array, again.train.array)
    assert len(digits.train) + len(digits.test) == 1797
    shares = np.bincount(digits.test.labels) / np.bincount(digits.train.labels)
    np.testing.assert_allclose(shares, 450 / 1347, atol=0.02)
    assert digits.train.array.dtype == np.uint8
    assert digits.train.array.max() == 255
    scaled = digits.train.array / 255
    np.testing.assert_allclose([digits.mean[0], digits.std[0]], [scaled.mean(), scaled.std()])


def test_a_name_that_is_unknown_or_missing_is_explained(tmp_path: Path) -> None:
    for text, said in {
        "cifar-10": "'cifar10'",
        "mnits": "'mnist'",
        "CIFAR10": "'cifar10'",
        "fashion_mnist": "'fashion-mnist'",
        "imagenet": "digits, mnist",
    }.items():
        with pytest.raises(ValueError, match=f"unknown dataset '{text}': .*{said}"):
            load_dataset(text)
    for name in ("mnist", "fashion-mnist", "cifar10", "cifar100"):
        with pytest.raises(FileNotFoundError) as error:
            load_dataset(name, root=tmp_path)
        for part in (
            f"{name}: not found in {tmp_path}",
            "LABELPROOF_DATA",
            f"'labelproof data download {name} --data-root {tmp_path}'",
            f"place {DATASETS[name].files[0].name}",
            f"in {tmp_path / name}",
        ):
            assert part in str(error.value)


def write_idx(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


MIXED = {
    name if number % 2 else f"{name}.gz": data if number % 2 else gzip.compress(data)
    for number, (name, data) in enumerate(tiny_contents().items())
}
ALL_SPELLINGS = [tiny_contents(), tiny_files(), MIXED]


def test_idx_files_are_found_where_they_usually_are(tmp_path: Path) -> None:
    for name, other in itertools.permutations(("mnist", "fashion-mnist")):
        known = DATASETS[name]
        for folder, files in zip(known.layouts[0].folders, ALL_SPELLINGS, strict=True):
            root = tmp_path / folder.replace("/", "-")
            write_idx(root / folder, files)
            dataset = load_dataset(name, root=root)
            assert dataset.train.array.shape == (6, 1, 28, 28)
            assert dataset.test.labels.tolist() == [0, 1, 2, 3]
            assert dataset.train.labels.dtype == np.int64
            assert dataset.class_names == known.class_names
            assert (dataset.mean, dataset.std) == (known.mean, known.std)
            assert dataset.clean
            with pytest.raises(FileNotFoundError, match=f"{other}: not found"):
                load_dataset(other, root=root)


def test_idx_files_that_are_missing_or_do_not_belong_together_are_named(tmp_path: Path) -> None:
    labels, images = np.array([0, 1, 2, 3, 4, 10], np.uint8), np.zeros((6, 28, 28), np.uint8)
    for name, content, message in (
        ("train-labels-idx1-ubyte", idx_bytes(labels[:2]), r"\(6, 28, 28\) and \(2,\)"),
        ("train-labels-idx1-ubyte", idx_bytes(labels), "below 10, got .* up to 10"),
        ("train-labels-idx1-ubyte", idx_bytes(images), r"labels \(N\)"),
        ("train-images-idx3-ubyte", idx_bytes(labels), r"images \(N, H, W\)"),
        ("t10k-labels-idx1-ubyte", b"hello", "IDX"),
    ):
        write_idx(tmp_path / "mnist", {**tiny_contents(), name: content})
        expected = rf"^{tmp_path / 'mnist'}.*{message}.*\(labelproof data download mnist\)$"
        with pytest.raises(ValueError, match=expected):
            load_dataset("mnist", root=tmp_path)
        (tmp_path / "mnist" / name).unlink()
    write_idx(tmp_path / "mnist", tiny_contents())
    (tmp_path / "mnist" / "t10k-images-idx3-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match=r"mnist: not found in .*get it with"):
        load_dataset("mnist", root=tmp_path)


def test_cifar_is_found_in_either_version(tmp_path: Path) -> None:
    files = cifar10_records()
    layouts = DATASETS["cifar10"].layouts
    for number, places in enumerate(zip(*(each.folders for each in layouts), strict=True)):
        for write, place, root in zip((write_binary, write_python), places, "ab", strict=True):
            write(tmp_path / f"{number}{root}" / place, files)
        for root in "ab":
            dataset = load_dataset("cifar10", root=tmp_path / f"{number}{root}")
            assert dataset.train.array.shape == (10, 3, 32, 32)


def test_a_path_is_read_as_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{label}/{number}.png" for label in ("cat", "dog") for number in range(3)]
    # A name comes first, so that a folder of that name is given with its path.
    write_images(tmp_path / "mnist", names)
    rows = "".join(f"mnist/{name},{name[:3]}\n" for name in names)
    (tmp_path / "table.csv").write_text(f"path,label\n{rows}")
    labels = np.array(["cat", "dog"] * 3)
    np.savez(tmp_path / "a.npz", images=np.arange(6 * 16).reshape(6, 4, 4) % 256, labels=labels)
    monkeypatch.chdir(tmp_path)
    for path in ("./mnist", Path("mnist"), "table.csv", "a.npz"):
        dataset = load_dataset(path)
        assert (dataset.class_names, len(dataset.train)) == (("cat", "dog"), 6), path
    with pytest.raises(FileNotFoundError, match="mnist: not found in"):
        load_dataset("mnist", root="root")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").touch()
    with pytest.raises(ValueError, match="saved"):
        load_dataset("saved")
    for path in ("photos/cats", "table.tsv", "/nowhere", Path("photos")):
        with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
            load_dataset(path, label="kind")
    (tmp_path / "data.doc").touch()
    with pytest.raises(ValueError, match=r"data\.doc: expected a folder or a file .*\.csv"):
        load_dataset(tmp_path / "data.doc")


def test_verifying_looks_at_the_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = tiny_idx("https://example.org")
    monkeypatch.setitem(DATASETS, "tiny", entry)
    for number, files in enumerate(ALL_SPELLINGS):
        write_idx(tmp_path / str(number) / "tiny", files)
        found = verify_dataset("tiny", root=tmp_path / str(number))
        assert found.good, found.problems
        assert found.unknown == ()
    write_idx(tmp_path / "mnist", tiny_contents())
    found = verify_dataset("mnist", root=tmp_path)
    assert found.path == tmp_path / "mnist"
    assert "train: expected images (60000, 1, 28, 28), got (6, " in found.problems[0]
    assert "not the publisher's train-images-idx3-ubyte" in found.problems[2]
    monkeypatch.setitem(DATASETS, "tiny", replace(entry, image_shape=(1, 32, 32)))
    problems = verify_dataset("tiny", root=tmp_path / "0").problems
    assert "1, 32, 32), got" in problems[0]


ENDS = {
    "mnist": {"train": (5, 8), "test": (7, 6)},
    "cifar10": {"train": (6, 1), "test": (3, 7)},
    "cifar100": {"train": (19, 73), "test": (49, 70)},
}


@pytest.mark.parametrize("name", ENDS)
def test_contents_and_normalisation_are_the_published_ones(name: str) -> None:
    root = shared_data(name)
    assert verify_dataset(name, root=root).problems == ()
    dataset = load_dataset(name, root=root)
    for split, ends in ENDS[name].items():
        assert tuple(dataset.splits[split].labels[[0, -1]]) == ends
    # A histogram holds all that a mean and a standard deviation need, and no gigabytes of floats.
    for channel in range(dataset.image_shape[0]):
        counts = np.bincount(dataset.train.array[:, channel].ravel(), minlength=256)
        values = np.arange(256) / 255
        mean = (counts * values).sum() / counts.sum()
        std = np.sqrt((counts * (values - mean) ** 2).sum() / counts.sum())
        np.testing.assert_allclose(dataset.mean[channel], mean, atol=5.1e-5)
        np.testing.assert_allclose(dataset.std[channel], std, atol=5.1e-5)
    if name == "cifar100":
        coarse = load_coarse_labels(root=root)["train"]
        pairs = np.unique(np.stack([coarse, dataset.train.labels]), axis=1)
        assert np.bincount(pairs[0]).tolist() == [5] * 20


def test_webvision_is_read_from_jpeg_files_to_arrays(tmp_path: Path) -> None:
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


def test_webvision_has_a_name_of_its_own(tmp_path: Path) -> None:
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
