"""The published datasets: what each holds, where its files come from, how to read and check them.

`published.json` lists them. The checksums of its `files` verify downloads; those of the
uncompressed contents, `checksums`, verify a dataset on disk, in whichever version and compression.
For Fashion-MNIST only the former are known for certain. MNIST's own server
asks for a password, so its `addresses` are mirrors with the same files.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from labelproof.data.cifar import CIFAR10_LAYOUTS, CIFAR100_LAYOUTS, Arrays, CifarLayout, read_gzip
from labelproof.data.dataset import Dataset, Split
from labelproof.data.images import (
    LabelledFiles,
    OnError,
    dataset_from_files,
    is_image,
)
from labelproof.data.notices import few, readable
from labelproof.ranges import suggest

ROOT_VARIABLE = "LABELPROOF_DATA"
"""The environment variable that names the folder of all datasets."""

_IDX_PAIRS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_IDX_FILES = (*_IDX_PAIRS["train"], *_IDX_PAIRS["test"])
_IDX_LIMIT = 1 << 30  # bytes of an uncompressed file; MNIST's largest has 47 MB


def read_idx(path: str | Path) -> NDArray[np.uint8]:
    """Read a file of bytes in IDX, the format of MNIST, plain or gzipped.

    The array has the shape that the file gives: `(N, H, W)` for images, `(N)` for labels.

    >>> file = getfixture("tmp_path") / "labels-idx1-ubyte"
    >>> _ = file.write_bytes(idx_bytes(np.array([5, 0, 4], np.uint8)))
    >>> read_idx(file)
    array([5, 0, 4], dtype=uint8)
    """
    path = Path(path)
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = read_gzip(path, _IDX_LIMIT)
    known = content[:3] == b"\0\0\x08" and content[3:4] in b"\1\2\3\4"
    if not known or len(content) < 5 or len(content) < 4 + 4 * content[3]:
        raise ValueError(
            f"{path}: expected an IDX file of bytes, which begins with 00 00 08, got "
            f"{content[:4].hex(' ')!r}; was a web page saved under this name?"
        )
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    pixels = np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape))
    if len(pixels) != math.prod(shape):
        raise ValueError(
            f"{path}: expected {math.prod(shape)} bytes after the header "
            f"({' x '.join(map(str, shape))}), got {len(pixels)}"
        )
    return pixels.reshape(shape).copy()


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    """Write an array of bytes as IDX, the inverse of [`read_idx`][labelproof.data.read_idx].

    >>> idx_bytes(np.array([[1, 2]], np.uint8)).hex(" ")
    '00 00 08 02 00 00 00 01 00 00 00 02 01 02'
    """
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8, copy=False).tobytes()


@dataclass(frozen=True)
class IdxLayout:
    """The format of MNIST: images and labels of two splits in a file each, plain or gzipped."""

    folders: tuple[str, ...]  # possible folders below the root, the preferred one first
    version: ClassVar[str] = "IDX files"
    files: ClassVar[tuple[str, ...]] = _IDX_FILES

    def read(self, path: Path) -> dict[str, Arrays]:
        """Read all four files and check that they belong together."""
        splits: dict[str, Arrays] = {}
        for split, pair in _IDX_PAIRS.items():
            file = _plain_or_gzipped(path, pair[1])
            images, labels = read_idx(_plain_or_gzipped(path, pair[0])), read_idx(file)
            most = labels.max(initial=0)
            if (images.ndim, labels.shape) != (3, images.shape[:1]) or most > 9:
                got = f"{images.shape} and {labels.shape} up to {most}"
                raise ValueError(
                    f"{file}: expected images (N, H, W), labels (N) below 10, got {got}"
                )
            splits[split] = images[:, None], labels[:, None]
        return splits

    def published(self, splits: Mapping[str, Arrays]) -> Iterator[tuple[str, bytes]]:
        """The publisher's uncompressed files, rebuilt from what was read."""
        for split, pair in _IDX_PAIRS.items():
            for name, array in zip(pair, splits[split], strict=True):
                yield name, idx_bytes(array[:, 0])


def _plain_or_gzipped(folder: Path, name: str) -> Path:
    plain = folder / name
    return plain if plain.is_file() else folder / f"{name}.gz"


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher offers it, in `folders` that are tried in order."""

    name: str
    size: int
    sha256: str
    folders: tuple[str, ...]
    unpacks: CifarLayout | None = None


@dataclass(frozen=True)
class KnownDataset:
    """The metadata of a published dataset."""

    name: str
    summary: str
    counts: Mapping[str, int]  # images in each split
    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    mean: tuple[float, ...] = ()  # of each channel, of training images scaled to 0..1
    std: tuple[float, ...] = ()
    files: tuple[PublishedFile, ...] = ()  # none for digits, which come with scikit-learn
    layouts: tuple[IdxLayout | CifarLayout, ...] = ()
    checksums: Mapping[str, str] = field(default_factory=dict)  # of uncompressed files, SHA-256


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    name: str
    path: Path | None  # where it is; None if it is missing
    version: str  # the layout of its files
    problems: tuple[str, ...]
    unknown: tuple[str, ...] = ()  # files without a known checksum; only counts were checked

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def data_root(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder of all datasets: the one given, or `LABELPROOF_DATA`, or the user's cache.

    >>> data_root("datasets").name
    'datasets'
    """
    if chosen := given or os.environ.get(ROOT_VARIABLE):
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("labelproof", appauthor=False, opinion=False)


_HUMAN_LABELS = {
    "cifar10": ("cifar-n/cifar10n.npz", "cifar-n/CIFAR-10_human.pt"),
    "cifar100": ("cifar-n/cifar100n.npz", "cifar-n/CIFAR-100_human.pt"),
}


def find_human_labels(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of human labels of a dataset below the data root, or `None`.

    >>> find_human_labels("cifar10", getfixture("tmp_path"))
    """
    places = (data_root(root) / place for place in _HUMAN_LABELS.get(name, ()))
    return next((file for file in places if file.is_file()), None)


def is_known(name: str) -> bool:
    """Whether this is the name of a published dataset."""
    return name in DATASETS or name == "webvision"


def known_dataset(name: str) -> KnownDataset:
    """A published dataset by its name, or an error that suggests the nearest one."""
    if name in DATASETS:
        return DATASETS[name]
    if name == "webvision":
        raise ValueError(f"webvision: {WEBVISION}")
    raise ValueError(
        f"unknown dataset {name!r}: expected one of {', '.join(DATASETS)}, webvision, or a file or "
        f"folder{suggest(name.lower().replace('_', '-'), DATASETS)}"
    )


def load_published(
    name: str, root: str | os.PathLike[str] | None = None, *, on_error: OnError = "raise"
) -> Dataset:
    """Read a published dataset from its files on disk."""
    if name == "webvision":
        folder = data_root(root) / name
        if not folder.is_dir():
            raise FileNotFoundError(f"webvision: not found in {folder.parent}; {WEBVISION}")
        return load_webvision(folder, on_error=on_error)
    dataset = known_dataset(name)
    if not dataset.files:
        return load_digits()
    # The last column is the fine label, where there are two.
    splits = {
        split: Split(images, labels[:, -1].astype(np.int64))
        for split, (images, labels) in _read(dataset, data_root(root)).items()
    }
    return Dataset(dataset.name, splits, dataset.class_names, dataset.mean, dataset.std)


def load_coarse_labels(
    *, root: str | os.PathLike[str] | None = None
) -> dict[str, NDArray[np.int64]]:
    """The 20 super-classes of CIFAR-100 below a root, for each split in the order of its images."""
    splits = _read(DATASETS["cifar100"], data_root(root))
    return {split: labels[:, 0].astype(np.int64) for split, (_, labels) in splits.items()}


def load_digits() -> Dataset:
    """Read scikit-learn's digits: 1,797 images of 8 x 8, three quarters of them to train on.

    >>> digits = load_digits()
    >>> len(digits.train), len(digits.test), digits.image_shape
    (1347, 450, (1, 8, 8))
    """
    # Imported here: scikit-learn takes a second, and most commands do not need it.
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    pixels, labels = datasets.load_digits(return_X_y=True)
    # 16 grey levels.
    images = np.round(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    labels = labels.astype(np.int64)
    parts: Any = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
    splits = {"train": Split(parts[0], parts[2]), "test": Split(parts[1], parts[3])}
    scaled = splits["train"].array / 255
    mean, std = float(scaled.mean()), float(scaled.std())
    return Dataset("digits", splits, DATASETS["digits"].class_names, (mean,), (std,))


def find_dataset(dataset: KnownDataset, root: Path) -> tuple[IdxLayout | CifarLayout, Path] | None:
    """The layout of a dataset and the folder that holds all of its files, or `None`."""
    for layout in dataset.layouts:
        for folder in (root / name for name in layout.folders):
            if all(_plain_or_gzipped(folder, name).is_file() for name in layout.files):
                return layout, folder
    return None


def _locate(dataset: KnownDataset, root: Path) -> tuple[IdxLayout | CifarLayout, Path]:
    if found := find_dataset(dataset, root):
        return found
    names = ", ".join(file.name for file in dataset.files)
    raise FileNotFoundError(
        f"{dataset.name}: not found in {root} (--data-root or {ROOT_VARIABLE} names another one); "
        f"get it with 'labelproof data download {dataset.name} --data-root {root}', without a "
        f"network after you place {names} in {root / dataset.name}"
    )


def _read(dataset: KnownDataset, root: Path) -> dict[str, Arrays]:
    layout, path = _locate(dataset, root)
    try:
        return layout.read(path)
    except ValueError as error:
        again = f"fetch it again (labelproof data download {dataset.name})"
        raise ValueError(f"{error}; {again}") from error


def verify_dataset(name: str, *, root: str | os.PathLike[str] | None = None) -> Verification:
    """Read a published dataset and compare counts, sizes and SHA-256 with what was published.

    What was read is written back as the publisher's uncompressed files, so the checksum holds for
    every version and compression, and covers the reader, too. `root` is as for
    [`load_dataset`][labelproof.data.load_dataset].

    >>> verify_dataset("digits").good
    True
    """
    dataset = known_dataset(name)
    if not dataset.files:
        return Verification(dataset.name, None, "embedded", ())
    try:
        layout, path = _locate(dataset, data_root(root))
    except FileNotFoundError as error:
        problem = str(error).removeprefix(f"{dataset.name}: ")
        return Verification(dataset.name, None, "missing", (problem,))
    try:
        splits = layout.read(path)
    except (ValueError, OSError) as error:
        return Verification(dataset.name, path, layout.version, (str(error),))
    problems: list[str] = []
    for split, count in dataset.counts.items():
        if (shape := splits[split][0].shape) != (expected := (count, *dataset.image_shape)):
            problems.append(f"{split}: expected images {expected}, got {shape}")
    for file, content in layout.published(splits) if dataset.checksums else ():
        what = f"what was read is not the publisher's {file}"
        problems += _compare(what, dataset.checksums[file], content)
    unknown: list[str] = []
    for file in () if dataset.checksums else dataset.files:
        # Only the checksums of the compressed files are known.
        if (path / file.name).is_file():
            content = (path / file.name).read_bytes()
            problems += _compare(str(path / file.name), file.sha256, content)
        else:
            unknown.append(file.name.removesuffix(".gz"))
    return Verification(dataset.name, path, layout.version, tuple(problems), tuple(unknown))


def _compare(what: str, expected: str, content: bytes) -> list[str]:
    digest = hashlib.sha256(content).hexdigest()
    return [] if digest == expected else [f"{what}: expected SHA-256 {expected}, got {digest}"]


_LAYOUTS: Mapping[str, tuple[IdxLayout | CifarLayout, ...]] = {
    "mnist": (IdxLayout(("mnist", "mnist/raw", "MNIST/raw")),),
    "fashion-mnist": (IdxLayout(("fashion-mnist", "fashion-mnist/raw", "FashionMNIST/raw")),),
    "cifar10": CIFAR10_LAYOUTS,
    "cifar100": CIFAR100_LAYOUTS,
}


def _read_catalogue() -> dict[str, KnownDataset]:
    datasets = {}
    for name, values in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items():
        layouts, addresses = _LAYOUTS.get(name, ()), tuple(values.pop("addresses", ()))
        archives = {each.archive: each for each in layouts if isinstance(each, CifarLayout)}
        files = tuple(
            PublishedFile(file, size, sha256, addresses, archives.get(file))
            for file, (size, sha256) in values.pop("files", {}).items()
        )
        facts: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        datasets[name] = KnownDataset(name, **facts, files=files, layouts=layouts)
    return datasets


DATASETS: dict[str, KnownDataset] = _read_catalogue()
"""The published datasets by name."""

WEBVISION = (
    "mini WebVision cannot be downloaded from here: ask its publisher for WebVision 1.0 and place "
    "info/, google/ and val_images_256/ in the folder webvision of the data root"
)
"""How to get the dataset that has a name but no automatic download."""
IMAGENET_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet's training images, the usual normalisation."""

_SYNSET = re.compile(r"n\d{8}")


def load_webvision(
    root: str | os.PathLike[str],
    *,
    num_classes: int = 50,
    short_side: int | None = 256,
    on_error: OnError = "raise",
) -> Dataset:
    """Read mini WebVision: the first 50 classes of WebVision 1.0, its Google images only.

    The splits are `"train"`, about 66,000 web images; `"test"`, WebVision's validation images, 50
    a class; and, if present, `"imagenet"`, the ILSVRC 2012 validation images of the same classes.
    The label of a web image is the search word that found it, so labels count as not clean.

    `root` holds what the publisher's archives unpack to:

        info/synsets.txt                  n01440764 tench, Tinca tinca
        info/train_filelist_google.txt    google/q0001/abc.jpg 0
        info/val_filelist.txt             val000001.jpg 0
        google/q0001/...                  images resized to 256 pixels, or whole
        val_images_256/...                or val_images/
        imagenet/n01440764/...            or imagenet/val/; optional

    Args:
        root: The folder with `info`.
        num_classes: Number of classes to use, from the first.
        short_side: As for [`load_folder`][labelproof.data.load_folder].
        on_error: Likewise.

    >>> load_webvision("nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: nowhere/info/synsets.txt: expected the folder info of WebVision 1.0
    """
    folder, info = Path(root), Path(root) / "info"
    synsets = _read_synsets(info / "synsets.txt")
    if not 2 <= num_classes <= len(synsets):
        raise ValueError(f"num_classes: expected 2 to {len(synsets)}, got {num_classes}")
    places = [folder / "val_images_256", folder / "val_images"]
    validation = next((place for place in places if place.is_dir()), places[0])
    names = list(synsets.values())
    splits = {
        "train": _read_list(info / "train_filelist_google.txt", folder, names, num_classes),
        "test": _read_list(info / "val_filelist.txt", validation, names, num_classes),
    }
    if (folder / "imagenet").is_dir():
        chosen = dict(itertools.islice(synsets.items(), num_classes))
        splits["imagenet"] = _find_imagenet(folder / "imagenet", chosen)
    used, known = names[:num_classes], IMAGENET_STATISTICS
    return dataset_from_files("webvision", splits, used, on_error, short_side, statistics=known)


def _read_synsets(path: Path) -> dict[str, str]:
    """Synsets and their first name, in the order of the labels."""
    lines = [line.partition(" ") for line in _lines(path)]
    synsets = {synset: words.split(",")[0].strip() or synset for synset, _, words in lines}
    if not all(map(_SYNSET.fullmatch, synsets)) or len(synsets) < len(lines):
        raise ValueError(f"{path}: expected different synsets in lines such as 'n01440764 tench'")
    # ImageNet has two cranes, a bird and a machine.
    words = Counter(synsets.values())
    return {key: f"{word} ({key})" if words[word] > 1 else word for key, word in synsets.items()}


def _read_list(path: Path, folder: Path, names: Sequence[str], classes: int) -> LabelledFiles:
    """The images of a list whose label is among the first classes."""
    found = [line.rpartition(" ") for line in _lines(path)]
    if not all(label.isdecimal() and int(label) < len(names) for _, _, label in found):
        raise ValueError(f"{path}: expected a file and a label up to {len(names) - 1} in each line")
    chosen = [(file.strip(), int(label)) for file, _, label in found if int(label) < classes]
    if not chosen:
        raise ValueError(f"{path}: no images of the first {classes} classes")
    files = [os.path.join(folder, file) for file, _ in chosen]
    return LabelledFiles(files, [names[label] for _, label in chosen])


def _find_imagenet(root: Path, names: Mapping[str, str]) -> LabelledFiles:
    folder = root / "val" if (root / "val").is_dir() else root
    if missing := [synset for synset in names if not (folder / synset).is_dir()]:
        place = readable(str(folder))
        raise FileNotFoundError(f"imagenet: expected a folder of {few(missing)} in {place}")
    found = [
        path
        for synset in names
        for path in sorted((folder / synset).iterdir())
        if is_image(path.name)
    ]
    return LabelledFiles([str(path) for path in found], [names[path.parent.name] for path in found])


def _lines(path: Path) -> list[str]:
    """The lines that are not empty."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: expected the folder info of WebVision 1.0") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
