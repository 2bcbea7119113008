"""A folder for each class, with or without folders for training, validation and test."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from labelproof.data.dataset import Dataset, check_classes, order_classes
from labelproof.data.duplicates import report_duplicates
from labelproof.data.images import (
    SUFFIXES,
    LabelledFiles,
    OnError,
    check_on_error,
    dataset_from_files,
)
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.splits import SPLITS, joined_groups, split_name, splittable


@dataclass
class FolderListing:
    """The contents of a folder of images, before any image is opened."""

    splits: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # files of each class
    empty: list[str] = field(default_factory=list)  # class folders without an image
    ignored: list[str] = field(default_factory=list)  # not images by their ending
    loose: list[str] = field(default_factory=list)  # images beside the class folders, in no class

    @property
    def class_names(self) -> tuple[str, ...]:
        """All classes that have an image in some split, in order."""
        splits = self.splits.values()
        return order_classes(name for split in splits for name, files in split.items() if files)


def load_folder(
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    few_classes: bool = False,
) -> Dataset:
    """Read a folder that has a folder of images for each class.

    At the top there may be folders `train`, `val` and `test` (or `training`, `valid`,
    `validation`, `dev`, `testing`) with the class folders in them; without them all images are for
    training. Images may be deeper within a class folder. Classes are sorted by name, files by path,
    the same on every system. Hidden files are ignored.

    Args:
        path: The folder.
        on_error: For unreadable images: `"raise"` checks every header and raises, `"skip"` decodes
            everything once and leaves them out with a warning.
        short_side: Resize to this shorter side while decoding.
        few_classes: Accept fewer than two classes, to measure on.

    Returns:
        A dataset whose images are decoded on access. Its labels count as not clean.

    >>> from PIL import Image
    >>> photos = getfixture("tmp_path") / "photos"
    >>> for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
    ...     (photos / name).parent.mkdir(parents=True, exist_ok=True)
    ...     Image.effect_noise((32, 24), 50 + int(name[4])).convert("RGB").save(photos / name)
    >>> dataset = load_folder(photos)
    >>> dataset.name, dataset.class_names, dataset.train.labels, dataset.image_shape
    ('photos', ('cat', 'dog'), array([0, 0, 1]), (3, 24, 32))
    """
    check_on_error(on_error)
    listing = list_folder(path)
    place = readable(str(path))
    _report(place, listing)
    names = listing.class_names
    splits = {
        split: LabelledFiles(
            [file for name in names for file in classes.get(name, ())],
            [label for label, name in enumerate(names) for _ in classes.get(name, ())],
        )
        for split, classes in listing.splits.items()
    }
    if not few_classes:
        check_classes(place, names, num_images=len(splits["train"].labels))
    if on_error != "later":
        for split, copies in report_duplicates(place, splits).items():
            groups = splittable(joined_groups(copies), splits[split].labels)
            splits[split] = replace(splits[split], groups=groups)
    name = readable(Path(path).resolve().name)
    return dataset_from_files(name, splits, names, on_error=on_error, short_side=short_side)


def list_folder(path: str | os.PathLike[str]) -> FolderListing:
    """List the images of a folder by split and class, and everything else but hidden files."""
    root = os.fspath(path)
    if not os.path.isdir(root):
        kind = NotADirectoryError if os.path.exists(root) else FileNotFoundError
        raise kind(f"path: expected a folder, got {readable(root)}")
    listing = FolderListing()
    top = _entries(root)
    folders = _split_folders(root, top)
    for split, folder in folders.items():
        listing.splits[split] = _classes(folder, listing, root=root)
    if root not in folders.values():
        _list_beside(top, listing)
    return listing


def report_other_files(place: str, names: Sequence[str]) -> None:
    """Warn of files that are left out since their ending is not that of an image."""
    if names:
        notice(
            f"{place}: {count(len(names), 'file')} left out, not JPEG, PNG, WebP, GIF, BMP, TIFF "
            f"or PPM images ({_kinds(names)}): {few(names)}"
        )


def _split_folders(root: str, top: Sequence[os.DirEntry[str]]) -> dict[str, str]:
    """The folder of each split; without splits, the root is `train`."""
    folders = {entry.name: entry.path for entry in top if _is_folder(entry)}
    named = {name: split for name in folders if (split := split_name(name))}
    others = [name for name in folders if name not in named]
    holding = any(_is_folder(entry) for name in named for entry in _entries(folders[name]))
    splits = {split: folders[name] for name, split in named.items()}
    # "train" may be a class, between "bus" and "tram": a split holds folders, a class images.
    if not named or (others and (len(splits) < 2 or not holding)):
        return {"train": root}
    place, found = readable(root), few(list(named), shown=6)
    if not holding:
        raise ValueError(
            f"path: expected a folder for each class in {found} of {place}, got none; other labels "
            "can be given in a table"
        )
    if len(splits) < len(named):
        raise ValueError(f"path: expected one folder for each split in {place}, got {found}")
    if "train" not in splits:
        raise ValueError(f"path: expected a folder train in {place}, got {found}")
    if others:
        notice(f"{place}: left out, not one of train, val and test: {few(others)}")
    return {split: splits[split] for split in SPLITS if split in splits}


def _classes(folder: str, listing: FolderListing, *, root: str) -> dict[str, list[str]]:
    """The class folders of a split and the images in each."""
    entries = _entries(folder)
    classes: dict[str, list[str]] = {}
    for entry in entries:
        if not _is_folder(entry):
            continue
        # One form for accented letters: archives made on a Mac store them in two pieces.
        name = unicodedata.normalize("NFC", readable(entry.name))
        images = _images(entry.path, listing)
        classes.setdefault(name, []).extend(images)
        if not images:
            listing.empty.append(os.path.relpath(entry.path, root))
    _list_beside(entries, listing)
    return classes


def _images(folder: str, listing: FolderListing) -> list[str]:
    """The images in a folder and its subfolders, but not in folders that are linked there."""
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(place, name) for name in names if not name.startswith(".")]
    found.sort(key=lambda path: path.split(os.sep))
    listing.ignored += [path for path in found if _suffix(path) not in SUFFIXES]
    return [path for path in found if _suffix(path) in SUFFIXES]


def _list_beside(entries: Sequence[os.DirEntry[str]], listing: FolderListing) -> None:
    for entry in entries:
        if not _is_folder(entry):
            image = _suffix(entry.name) in SUFFIXES
            (listing.loose if image else listing.ignored).append(entry.path)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as scan:
        entries = [entry for entry in scan if not entry.name.startswith(".")]
    return sorted(entries, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _kinds(names: Sequence[str]) -> str:
    kinds = Counter(_suffix(name) or "without an ending" for name in names)
    return ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common(5))


def _report(place: str, listing: FolderListing) -> None:
    if not listing.class_names:
        found = f": {count(len(listing.loose), 'image')} in no class folder" * bool(listing.loose)
        found = found or f": only {_kinds(listing.ignored)}" * bool(listing.ignored)
        raise ValueError(f"{place}: expected a folder of images for each class, found none{found}")
    if not any(listing.splits["train"].values()):
        raise ValueError(f"{place}: the folder train holds no images")
    report_other_files(place, listing.ignored)
    if listing.loose:
        images = count(len(listing.loose), "image")
        notice(f"{place}: {images} left out, in no class folder: {few(listing.loose)}")
    if listing.empty:
        folders = count(len(listing.empty), "class folder")
        notice(f"{place}: {folders} without an image: {few(listing.empty)}")
