"""Mini WebVision: web images of 50 classes, labelled by the search that found them."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from labelproof.data.dataset import Dataset
from labelproof.data.images import LabelledFiles, OnError, dataset_from_files, is_image
from labelproof.data.notices import few, readable

IMAGENET_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of ImageNet's training images, which the field normalises with."""

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
        imagenet/n01440764/...            or imagenet/val/, if wanted

    Args:
        root: The folder with `info`.
        num_classes: How many classes, from the first.
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
    """Synsets and their first word, in the order of the labels."""
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
