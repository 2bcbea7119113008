"""The datasets that are known by name: what they hold, where they come from, and their checksums.

Checksums are of two kinds. Those of the files as they are published decide whether a download is
used at all. Those of the uncompressed contents decide whether a dataset that is there is right, in
whichever version and however compressed it came.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from labelproof.data.cifar_layout import CIFAR10_LAYOUTS, CIFAR100_LAYOUTS, CifarLayout
from labelproof.data.class_names import CIFAR10, CIFAR100, DIGITS, FASHION_MNIST
from labelproof.data.idx_layout import IdxLayout
from labelproof.data.layouts import Layout

__all__ = [
    "BY_HAND",
    "DATASETS",
    "KnownDataset",
    "PublishedFile",
    "is_known",
    "known_dataset",
    "plain_name",
]


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher offers it.

    Attributes:
        name: The file's name.
        size: Its bytes.
        sha256: Its checksum.
        folders: The addresses it is found below; the first that answers is taken.
        unpacks: For an archive, the layout of what comes out of it.
    """

    name: str
    size: int
    sha256: str
    folders: tuple[str, ...]
    unpacks: CifarLayout | None = None


@dataclass(frozen=True)
class KnownDataset:
    """What is known of a dataset before it is read.

    Attributes:
        name: What it is called.
        summary: What it is, in a few words.
        counts: Images in each split.
        image_shape: Channels, height and width.
        class_names: A name for each class; those that come with the files are used before these.
        mean: Per-channel mean to normalise with, of images scaled to 0..1.
        std: Per-channel standard deviation, likewise.
        files: What is downloaded; nothing, where it comes with the software.
        layouts: How its files may be laid out.
        checksums: SHA-256 of the publisher's files once they are uncompressed.
    """

    name: str
    summary: str
    counts: Mapping[str, int]
    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    files: tuple[PublishedFile, ...] = ()
    layouts: tuple[Layout, ...] = ()
    checksums: Mapping[str, str] = field(default_factory=dict)

    @property
    def embedded(self) -> bool:
        """Whether there is nothing to fetch."""
        return not self.files


BY_HAND: Mapping[str, str] = {
    "webvision": (
        "mini WebVision cannot be downloaded from here: ask its publisher for WebVision 1.0 and "
        "place info/, google/ and val_images_256/ in the folder webvision of the data root"
    ),
}
"""Datasets that have a name and whose files only a person can get."""


def is_known(name: str) -> bool:
    """Whether a text is the name of a dataset that is known here, in any case.

    >>> is_known(" MNIST "), is_known("photos/")
    (True, False)
    """
    return name.strip().lower() in (*DATASETS, *BY_HAND)


def plain_name(name: str) -> str:
    """The name of a known dataset as it is written here; any other text, such as a path, as it is.

    >>> plain_name(" MNIST "), plain_name("Photos/")
    ('mnist', 'Photos/')
    """
    return name.strip().lower() if is_known(name) else name


def known_dataset(name: str) -> KnownDataset:
    """A dataset of the catalogue, or an error that suggests the nearest name.

    >>> known_dataset("mnist").image_shape
    (1, 28, 28)
    >>> known_dataset("cifra10")
    Traceback (most recent call last):
        ...
    ValueError: unknown dataset 'cifra10', did you mean 'cifar10'? There are digits, mnist,
    fashion-mnist, cifar10, cifar100, webvision, and there is no file or folder 'cifra10'
    """
    key = name.strip().lower()
    if key in DATASETS:
        return DATASETS[key]
    if key in BY_HAND:
        raise ValueError(f"{key}: {BY_HAND[key]}")
    nearest = difflib.get_close_matches(key.replace("_", "-"), DATASETS, n=1)
    hint = f", did you mean {nearest[0]!r}?" if nearest else "."
    known = ", ".join((*DATASETS, *BY_HAND))
    raise ValueError(
        f"unknown dataset {name!r}{hint} There are {known}, and there is no file or folder {name!r}"
    )


# The publisher's own server asks for a password or does not answer; these keep the same files.
_MNIST_FOLDERS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_FASHION_FOLDERS = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
_CIFAR_FOLDERS = ("https://www.cs.toronto.edu/~kriz/",)

_ALL = (
    KnownDataset(
        name="digits",
        summary="small handwritten digits, part of scikit-learn",
        counts={"train": 1347, "test": 450},
        image_shape=(1, 8, 8),
        class_names=DIGITS,
    ),
    KnownDataset(
        name="mnist",
        summary="handwritten digits",
        counts={"train": 60_000, "test": 10_000},
        image_shape=(1, 28, 28),
        class_names=DIGITS,
        mean=(0.1307,),
        std=(0.3081,),
        files=(
            PublishedFile(
                "train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                _MNIST_FOLDERS,
            ),
            PublishedFile(
                "train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                _MNIST_FOLDERS,
            ),
            PublishedFile(
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                _MNIST_FOLDERS,
            ),
            PublishedFile(
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                _MNIST_FOLDERS,
            ),
        ),
        layouts=(IdxLayout(("mnist", "mnist/raw", "MNIST/raw"), num_classes=10),),
        checksums={
            "train-images-idx3-ubyte": (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
            ),
            "train-labels-idx1-ubyte": (
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
            ),
            "t10k-images-idx3-ubyte": (
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
            ),
            "t10k-labels-idx1-ubyte": (
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
            ),
        },
    ),
    # Only the checksums of the gzipped files are known for certain, so these are what is verified.
    KnownDataset(
        name="fashion-mnist",
        summary="photos of clothes",
        counts={"train": 60_000, "test": 10_000},
        image_shape=(1, 28, 28),
        class_names=FASHION_MNIST,
        mean=(0.2860,),
        std=(0.3530,),
        files=(
            PublishedFile(
                "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                _FASHION_FOLDERS,
            ),
            PublishedFile(
                "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                _FASHION_FOLDERS,
            ),
            PublishedFile(
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                _FASHION_FOLDERS,
            ),
            PublishedFile(
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                _FASHION_FOLDERS,
            ),
        ),
        layouts=(
            IdxLayout(
                ("fashion-mnist", "fashion-mnist/raw", "FashionMNIST/raw"),
                num_classes=10,
            ),
        ),
    ),
    KnownDataset(
        name="cifar10",
        summary="small colour photos of animals and vehicles",
        counts={"train": 50_000, "test": 10_000},
        image_shape=(3, 32, 32),
        class_names=CIFAR10,
        mean=(0.49140, 0.48216, 0.44653),
        std=(0.24703, 0.24349, 0.26159),
        files=(
            PublishedFile(
                "cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                _CIFAR_FOLDERS,
                unpacks=CIFAR10_LAYOUTS[0],
            ),
        ),
        layouts=CIFAR10_LAYOUTS,
        checksums={
            "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        },
    ),
    KnownDataset(
        name="cifar100",
        summary="small colour photos of a hundred kinds of things",
        counts={"train": 50_000, "test": 10_000},
        image_shape=(3, 32, 32),
        class_names=CIFAR100,
        mean=(0.5071, 0.4865, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
        files=(
            PublishedFile(
                "cifar-100-binary.tar.gz",
                168_513_733,
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                _CIFAR_FOLDERS,
                unpacks=CIFAR100_LAYOUTS[0],
            ),
        ),
        layouts=CIFAR100_LAYOUTS,
        checksums={
            "train.bin": "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
            "test.bin": "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
        },
    ),
)

DATASETS: dict[str, KnownDataset] = {dataset.name: dataset for dataset in _ALL}
"""All of them, by name."""
