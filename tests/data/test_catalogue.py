import dataclasses
import gzip
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from cifar_files import cifar10_records, cifar100_records, write_binary, write_python
from tiny_dataset import tar_gz, tiny_cifar_archive, tiny_contents, tiny_files, tiny_idx

from labelproof.data import DATASETS, data_root, idx_bytes, load_dataset, verify_dataset
from labelproof.data.catalogue import known_dataset


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LABELPROOF_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)


def test_the_root_is_given_or_in_the_environment_or_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_root(platform="linux") == tmp_path / ".cache" / "labelproof"
    assert data_root(platform="darwin") == tmp_path / "Library" / "Caches" / "labelproof"
    assert data_root(platform="win32") == tmp_path / "AppData" / "Local" / "labelproof"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert data_root(platform="linux") == Path("/cache/labelproof")
    assert data_root(platform="win32") == Path("/local/labelproof")
    monkeypatch.setenv("LABELPROOF_DATA", "~/data")
    assert data_root() == tmp_path / "data"
    assert data_root("elsewhere") == Path("elsewhere")


@pytest.mark.parametrize("name", DATASETS)
def test_the_catalogue_is_consistent(name: str) -> None:
    dataset = DATASETS[name]
    assert dataset.name == name
    assert len(set(dataset.class_names)) == len(dataset.class_names)
    assert len(dataset.mean) == len(dataset.std) == (dataset.image_shape[0] if dataset.files else 0)
    for file in dataset.files:
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert all(re.match("https://.*/$", folder) for folder in file.folders)
    for layout in dataset.layouts:
        assert layout.folders[0].startswith(name)
    sums = [*dataset.checksums.values(), *(file.sha256 for file in dataset.files)]
    assert len(set(sums)) == len(sums)


def test_the_classes_of_cifar100_are_in_the_publishers_order() -> None:
    names = DATASETS["cifar100"].class_names
    assert len(names) == 100
    assert list(names) == sorted(names)
    assert (names[0], names[50], names[99]) == ("apple", "mouse", "worm")


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("cifar-10", "cifar10"), ("mnits", "mnist"), ("fashion_mnist", "fashion-mnist")],
)
def test_an_unknown_name_suggests_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"unknown dataset '{text}', did you mean '{nearest}'"):
        load_dataset(text)


def test_an_unknown_name_without_a_neighbour_lists_all() -> None:
    with pytest.raises(ValueError, match=r"unknown dataset 'imagenet'\. There are digits, mnist"):
        load_dataset("imagenet")


def test_names_may_be_in_capitals(tmp_path: Path) -> None:
    assert load_dataset(" Digits ").name == "digits"
    with pytest.raises(FileNotFoundError, match="mnist: not found"):
        load_dataset("MNIST", root=tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "cifar100"])
def test_a_missing_dataset_says_how_to_get_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        load_dataset(name, root=tmp_path)
    message = str(error.value)
    for part in (
        f"{name}: not found in {tmp_path}",
        "LABELPROOF_DATA",
        f"'labelproof data download {name} --data-root {tmp_path}'",
        f"place {DATASETS[name].files[0].name}",
        f"in {tmp_path / name} yourself",
    ):
        assert part in message


def write_idx(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


MIXED = {
    name if number % 2 else f"{name}.gz": data if number % 2 else gzip.compress(data)
    for number, (name, data) in enumerate(tiny_contents().items())
}


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("folder", [0, 1, 2])
@pytest.mark.parametrize("files", [tiny_contents(), tiny_files(), MIXED], ids=len)
def test_idx_files_are_found_where_they_usually_are(
    tmp_path: Path, name: str, folder: int, files: dict[str, bytes]
) -> None:
    write_idx(tmp_path / DATASETS[name].layouts[0].folders[folder], files)
    dataset = load_dataset(name, root=tmp_path)
    assert dataset.train.array.shape == (6, 1, 28, 28)
    assert dataset.test.labels.tolist() == [0, 1, 2, 3]
    assert dataset.train.labels.dtype == np.int64
    assert dataset.class_names == DATASETS[name].class_names
    assert (dataset.mean, dataset.std) == (DATASETS[name].mean, DATASETS[name].std)
    assert dataset.clean


def test_mnist_and_fashion_mnist_are_not_taken_for_each_other(tmp_path: Path) -> None:
    write_idx(tmp_path / "mnist", tiny_files())
    with pytest.raises(FileNotFoundError, match="fashion-mnist: not found"):
        load_dataset("fashion-mnist", root=tmp_path)


def labels(*values: int) -> bytes:
    return idx_bytes(np.array(values, np.uint8))


def images(*shape: int) -> bytes:
    return idx_bytes(np.zeros(shape, np.uint8))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train-labels-idx1-ubyte", labels(1, 2), "expected 6 labels, one for each image of"),
        ("train-labels-idx1-ubyte", labels(0, 1, 2, 3, 4, 10), "got 10 for image 5"),
        ("train-labels-idx1-ubyte", images(6, 28, 28), "expected labels, N, got 6 x 28 x 28"),
        ("train-images-idx3-ubyte", labels(0, 1, 2, 3, 4, 5), "expected images, .*, got 6; are"),
        ("t10k-images-idx3-ubyte", images(4, 8, 8), "training and test images of one size"),
        ("t10k-labels-idx1-ubyte", b"hello", "expected an IDX file"),
    ],
)
def test_idx_files_that_do_not_belong_together_are_explained(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    write_idx(tmp_path / "mnist", {**tiny_contents(), name: content})
    with pytest.raises(ValueError, match=message) as error:
        load_dataset("mnist", root=tmp_path)
    assert str(error.value).startswith(str(tmp_path / "mnist"))
    assert str(error.value).endswith("(labelproof data download mnist)")


def test_files_that_are_missing_are_named(tmp_path: Path) -> None:
    files = tiny_contents()
    del files["t10k-images-idx3-ubyte"]
    write_idx(tmp_path / "mnist", files)
    with pytest.raises(FileNotFoundError, match="mnist lacks t10k-images-idx3-ubyte; get it with"):
        load_dataset("mnist", root=tmp_path)


@pytest.mark.parametrize("folder", ["cifar10/cifar-10-batches-bin", "cifar10", "."])
def test_cifar_is_found_in_either_version(tmp_path: Path, folder: str) -> None:
    files = cifar10_records()
    at = "cifar-10-batches-{}" if folder == "." else folder
    write_binary(tmp_path / "a" / at.format("bin"), files)
    write_python(tmp_path / "b" / at.replace("-bin", "-py").format("py"), files)
    binary, python = (load_dataset("cifar10", root=tmp_path / root) for root in "ab")
    for split in ("train", "test"):
        np.testing.assert_array_equal(binary.splits[split].array, python.splits[split].array)
        np.testing.assert_array_equal(binary.splits[split].labels, python.splits[split].labels)
    assert binary.train.array.shape == (10, 3, 32, 32)


@pytest.mark.parametrize("place", ["cifar10", "."])
def test_cifar_is_read_from_its_archive(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "cifar-10-binary.tar.gz").write_bytes(tiny_cifar_archive())
    dataset = load_dataset("cifar10", root=tmp_path)
    assert dataset.class_names[0] == "class0"
    folder = write_python(tmp_path / "files", cifar10_records())
    batches = {f"cifar-10-batches-py/{path.name}": path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "cifar-10-python.tar.gz").write_bytes(tar_gz(batches))
    same = load_dataset("cifar10", root=tmp_path / "other")
    np.testing.assert_array_equal(same.train.array, dataset.train.array)
    np.testing.assert_array_equal(same.test.labels, dataset.test.labels)


def test_an_archive_without_its_batches_is_explained(tmp_path: Path) -> None:
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(tar_gz({"readme": b"hello"}))
    with pytest.raises(ValueError, match=r"expected train\.bin, test\.bin in it, found none"):
        load_dataset("cifar100", root=tmp_path)


def test_an_extracted_folder_comes_before_an_archive(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"not an archive")
    write_python(tmp_path / "cifar-10-batches-py", cifar10_records())
    assert len(load_dataset("cifar10", root=tmp_path).test) == 2


def write_manifest(file: Path) -> None:
    if file.suffix == ".PARQUET":
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")
        parquet.write_table(arrow.table({"path": ["1.png"], "label": ["cat"]}), file)
    elif file.suffix == ".jsonl":
        file.write_text('{"path": "1.png", "label": "cat"}')
    else:
        file.write_text(
            "path,label\n1.png,cat\n".replace(",", "," if file.suffix == ".csv" else "\t")
        )


@pytest.mark.parametrize(
    ("path", "module", "function"),
    [
        ("photos", "folder", "load_folder"),
        ("table.csv", "manifest", "load_manifest"),
        ("table.tsv", "manifest", "load_manifest"),
        ("table.jsonl", "manifest", "load_manifest"),
        ("TABLE.PARQUET", "manifest", "load_manifest"),
        ("arrays.npz", "arrays", "load_arrays"),
        ("images.npy", "arrays", "load_arrays"),
        ("saved/dataset_dict.json", "huggingface", "load_huggingface"),
        ("saved/state.json", "huggingface", "load_huggingface"),
        ("web/info/train_filelist_google.txt", "webvision", "load_webvision"),
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_a_path_is_given_to_the_reader_of_its_kind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    module: str,
    function: str,
    as_text: bool,
) -> None:
    reader = ModuleType(f"labelproof.data.{module}")
    setattr(reader, function, lambda given, **options: ("read", given, options))
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch() if file.suffix else file.mkdir()
    if module == "manifest":
        write_manifest(file)
    given = tmp_path / Path(path).parts[0]
    asked = {"on_error": "skip", "few_classes": True}
    kind, read, options = load_dataset(str(given) if as_text else given, **asked)  # pyright: ignore
    assert (kind, read) == ("read", given)
    # WebVision has the classes of its list, whatever images there are; only tables have columns.
    expected = {
        "webvision": {"on_error": "skip"},
        "manifest": {**asked, "label": None, "group": None},
    }.get(module, asked)
    assert options == expected


def test_a_folder_named_like_a_dataset_is_given_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ModuleType("labelproof.data.folder")
    vars(reader)["load_folder"] = lambda given, **_: given
    monkeypatch.setitem(sys.modules, reader.__name__, reader)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mnist").mkdir()
    assert load_dataset("./mnist") == Path("mnist")
    with pytest.raises(FileNotFoundError, match="mnist: not found in"):
        load_dataset("mnist", root=tmp_path / "root")


@pytest.mark.parametrize("path", ["photos/cats", "table.csv", "/nowhere", Path("photos")])
def test_a_path_that_leads_nowhere_is_explained(path: str | Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        load_dataset(path)


def test_a_file_of_another_kind_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "data.xlsx"
    file.touch()
    with pytest.raises(ValueError, match=r"expected a folder or a file that ends in \.csv, \.tsv"):
        load_dataset(file)


def test_a_known_dataset_that_differs_is_not_verified(tmp_path: Path) -> None:
    write_idx(tmp_path / "mnist", tiny_contents())
    found = verify_dataset("mnist", root=tmp_path)
    assert not found.good
    assert found.path == tmp_path / "mnist"
    assert found.problems[0] == "expected 60000 images to train, got 6"
    assert "not the publisher's train-images-idx3-ubyte" in found.problems[2]


def test_every_layout_of_the_right_contents_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", tiny_idx("https://example.org"))
    for number, files in enumerate((tiny_contents(), tiny_files(), MIXED)):
        write_idx(tmp_path / str(number) / "tiny", files)
        found = verify_dataset("tiny", root=tmp_path / str(number))
        assert found.good, found.problems
        assert found.unknown == ()


def test_without_checksums_of_the_contents_the_files_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tiny_idx("https://example.org", checksums=False)
    monkeypatch.setitem(DATASETS, "tiny", entry)
    folder = tmp_path / "tiny"
    write_idx(folder, tiny_files())
    assert verify_dataset("tiny", root=tmp_path).good
    changed = folder / "t10k-images-idx3-ubyte.gz"
    changed.write_bytes(gzip.compress(gzip.decompress(changed.read_bytes()), 1))
    (problem,) = verify_dataset("tiny", root=tmp_path).problems
    assert problem.startswith(f"{changed}: expected SHA-256 ")
    changed.unlink()
    write_idx(folder, {changed.stem: tiny_contents()[changed.stem]})
    found = verify_dataset("tiny", root=tmp_path)
    assert found.good
    assert found.unknown == ("t10k-images-idx3-ubyte",)


def test_images_of_another_size_are_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = dataclasses.replace(tiny_idx("https://example.org"), image_shape=(1, 32, 32))
    monkeypatch.setitem(DATASETS, "tiny", entry)
    write_idx(tmp_path / "tiny", tiny_files())
    problems = verify_dataset("tiny", root=tmp_path).problems
    assert problems[0] == "expected images to train of (1, 32, 32), got (1, 28, 28)"


@pytest.mark.parametrize("state", ["missing", "incomplete", "damaged"])
def test_what_cannot_be_read_is_not_verified(tmp_path: Path, state: str) -> None:
    if state == "incomplete":
        write_binary(tmp_path / "cifar100", {"train.bin": cifar100_records()["train.bin"]})
    if state == "damaged":
        write_idx(tmp_path / "cifar100", {"train.bin": b"x", "test.bin": b"y"})
    found = verify_dataset("cifar100", root=tmp_path)
    assert not found.good
    expected = {"missing": "not found in", "incomplete": "lacks test.bin", "damaged": "a multiple"}
    assert expected[state] in found.problems[0]


def test_a_dataset_is_known_by_its_own_name() -> None:
    assert known_dataset("cifar100") is DATASETS["cifar100"]
