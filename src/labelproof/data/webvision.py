"""Mini WebVision: photos found by searching the web for 50 things, and not all of them show it."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from labelproof.data.dataset import Dataset
from labelproof.data.encoded import SUFFIXES
from labelproof.data.labelled_files import (
    LabelledFiles,
    OnError,
    check_on_error,
    dataset_from_files,
)
from labelproof.data.notices import few, readable

__all__ = ["load_webvision"]

IMAGENET_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet's training images, which the field normalises with."""

_TRAIN_PLACES = ("", "resized_images", "images", "train", "train_images")
_TEST_PLACES = ("val_images_256", "val_images", "val_images_resized", "val", "")
_IMAGENET_PLACES = ("val", "validation", "ILSVRC2012_img_val", "Data/CLS-LOC/val", "")
_IMAGENET_LISTS = (
    "val.txt",
    "val_labels.txt",
    "imagenet_2012_validation_synset_labels.txt",
    "LOC_val_solution.csv",
)
_SYNSET = re.compile(r"n\d{8}")


def load_webvision(
    root: str | os.PathLike[str],
    *,
    imagenet: str | os.PathLike[str] | None = None,
    num_classes: int = 50,
    short_side: int | None = 256,
    on_error: OnError = "raise",
) -> Dataset:
    """Read mini WebVision: the first 50 classes of WebVision 1.0, its Google images only.

    The splits are `"train"`, about 66,000 web images; `"test"`, WebVision's validation images, 50
    a class; and, where they are there, `"imagenet"`, the ILSVRC 2012 validation images of the same
    classes. Labels of the web images are what was searched for, so they count as not clean.

    What is expected in `root`, as the publisher's archives unpack:

        info/synsets.txt                  n01440764 tench, Tinca tinca
        info/train_filelist_google.txt    google/q0001/abc.jpg 0
        info/val_filelist.txt             val000001.jpg 0
        google/q0001/...                  images resized to 256 pixels, or whole
        val_images_256/...                or val_images/

    ILSVRC validation images are one folder a synset, or one flat folder with a list beside it:
    `val.txt` (`ILSVRC2012_val_00000001.JPEG 65`), a list of synsets in the order of the files, or
    `LOC_val_solution.csv`.

    Args:
        root: The folder with `info`.
        imagenet: The folder of ILSVRC validation images, or one that has it as `val`;
            `root/imagenet` where it exists.
        num_classes: How many classes, from the first.
        short_side: Resize to this shorter side while decoding; `None` keeps each image's own.
        on_error: What becomes of images that cannot be read: `"raise"` looks at every header and
            refuses, `"skip"` decodes everything once and leaves them out with a warning.

    Returns:
        A dataset whose images are decoded when they are asked for.

    Raises:
        FileNotFoundError: A list or a folder of images is not there.
        ValueError: A list is not of the form above, or images cannot be read.

    Example:
        >>> load_webvision("nowhere")
        Traceback (most recent call last):
            ...
        FileNotFoundError: nowhere/info/synsets.txt: not there; expected the folder info of
        WebVision 1.0
    """
    check_on_error(on_error)
    folder = Path(root)
    synsets = _read_synsets(folder / "info" / "synsets.txt")
    if not 2 <= num_classes <= len(synsets):
        raise ValueError(f"num_classes: expected 2 to {len(synsets)}, got {num_classes}")
    splits = {
        "train": _listed(
            folder, "train_filelist_google.txt", _TRAIN_PLACES, len(synsets), num_classes
        ),
        "test": _listed(folder, "val_filelist.txt", _TEST_PLACES, len(synsets), num_classes),
    }
    further = Path(imagenet) if imagenet is not None else folder / "imagenet"
    if imagenet is not None or further.is_dir():
        splits["imagenet"] = _imagenet(further, list(synsets), num_classes)
    return dataset_from_files(
        "webvision",
        splits,
        _class_names(synsets, num_classes),
        on_error=on_error,
        short_side=short_side,
        statistics=IMAGENET_STATISTICS,
    )


def _read_synsets(path: Path) -> dict[str, str]:
    """Synsets and their first word, in the order that labels count."""
    synsets: dict[str, str] = {}
    for number, line in _lines(path):
        synset, _, words = line.partition(" ")
        if not _SYNSET.fullmatch(synset) or synset in synsets:
            raise ValueError(
                f"{path}:{number}: expected a new synset such as 'n01440764 tench', got {line!r}"
            )
        synsets[synset] = words.split(",")[0].strip() or synset
    return synsets


def _class_names(synsets: Mapping[str, str], num_classes: int) -> list[str]:
    # ImageNet has two cranes, a bird and a machine.
    times = Counter(synsets.values())
    names = [f"{word} ({key})" if times[word] > 1 else word for key, word in synsets.items()]
    return names[:num_classes]


def _listed(
    root: Path, name: str, places: Sequence[str], num_synsets: int, num_classes: int
) -> LabelledFiles:
    """The images of a list whose label is among the first classes."""
    path = root / "info" / name
    files: list[str] = []
    labels: list[int] = []
    for number, line in _lines(path):
        file, _, label = line.rpartition(" ")
        if not file or not label.isdecimal() or int(label) >= num_synsets:
            raise ValueError(
                f"{path}:{number}: expected a file and a label from 0 to {num_synsets - 1}, "
                f"got {line!r}"
            )
        if int(label) < num_classes:
            files.append(file.strip())
            labels.append(int(label))
    if not files:
        raise ValueError(f"{path}: no images of the first {num_classes} classes")
    folder = _place(root, places, files[0], name)
    return LabelledFiles([os.path.join(folder, file) for file in files], labels)


def _place(root: Path, places: Sequence[str], file: str, name: str) -> Path:
    """The folder that a list's paths begin in."""
    top = Path(file).parts[0]
    for place in places:
        # The first image itself may be missing: then its folder decides, as far as it has one.
        if (root / place / file).exists() or (top != file and (root / place / top).is_dir()):
            return root / place
    tried = few([str(root / place / file) for place in places], shown=len(places))
    raise FileNotFoundError(f"{name}: the first image is in none of {tried}")


def _imagenet(folder: Path, synsets: Sequence[str], num_classes: int) -> LabelledFiles:
    index = {synset: label for label, synset in enumerate(synsets[:num_classes])}
    for place in _IMAGENET_PLACES:
        here = folder / place
        if any((here / synset).is_dir() for synset in index):
            return _imagenet_by_folder(here, index)
        if any(here.glob("ILSVRC2012_val_*.JPEG")):
            return _imagenet_by_list(here, folder, synsets, index)
    raise FileNotFoundError(
        f"imagenet: expected folders such as {synsets[0]} or files ILSVRC2012_val_*.JPEG in "
        f"{readable(str(folder))} or its folder val"
    )


def _imagenet_by_folder(folder: Path, index: Mapping[str, int]) -> LabelledFiles:
    missing = [synset for synset in index if not (folder / synset).is_dir()]
    if missing:
        raise FileNotFoundError(f"imagenet: no folder in {folder} for {few(missing)}")
    files: list[str] = []
    labels: list[int] = []
    for synset, label in index.items():
        found = sorted(
            str(path) for path in (folder / synset).iterdir() if path.suffix.lower() in SUFFIXES
        )
        files += found
        labels += [label] * len(found)
    return LabelledFiles(files, labels)


def _imagenet_by_list(
    images: Path, root: Path, synsets: Sequence[str], index: Mapping[str, int]
) -> LabelledFiles:
    for folder in (images, images.parent, root):
        for name in _IMAGENET_LISTS:
            if (folder / name).is_file():
                named = dict(_imagenet_labels(folder / name, synsets))
                chosen = sorted((file, index[key]) for file, key in named.items() if key in index)
                if not chosen:
                    raise ValueError(f"{folder / name}: none of the wanted classes is in it")
                return LabelledFiles(
                    [str(images / file) for file, _ in chosen], [label for _, label in chosen]
                )
    raise FileNotFoundError(
        f"imagenet: expected a list of labels for {readable(str(images))}, one of "
        f"{', '.join(_IMAGENET_LISTS)}; ILSVRC2012_validation_ground_truth.txt counts classes in "
        "another order and is not read"
    )


def _imagenet_labels(path: Path, synsets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files of a list and the synset of each."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                yield f"{row['ImageId']}.JPEG", row["PredictionString"].split()[0]
        return
    # Numbers count the synsets in the order of their ids, whatever the order in WebVision's list.
    ordered = sorted(synsets)
    for position, (number, line) in enumerate(_lines(path), start=1):
        *name, label = line.split()
        if label.isdecimal() and name and int(label) < len(ordered):
            label = ordered[int(label)]
        if not _SYNSET.fullmatch(label):
            raise ValueError(
                f"{path}:{number}: expected a file and a class from 0 to {len(ordered) - 1} or a "
                f"synset, got {line!r}"
            )
        yield (name[0] if name else f"ILSVRC2012_val_{position:08d}.JPEG"), label


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not empty."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{readable(str(path))}: not there; expected the folder info of WebVision 1.0"
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{readable(str(path))}: expected text in UTF-8, {error}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()
