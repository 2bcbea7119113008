"""A folder for each class, with or without folders for training, validation and test."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from labelproof.data.classes import check_classes, order_classes
from labelproof.data.dataset import Dataset
from labelproof.data.duplicates import report_duplicates
from labelproof.data.encoded import SUFFIXES
from labelproof.data.foreign_kinds import report_foreign_kinds, report_other_files
from labelproof.data.groups import if_cuttable, join_groups
from labelproof.data.labelled_files import (
    LabelledFiles,
    OnError,
    check_on_error,
    dataset_from_files,
)
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.splits import SPLITS, split_name
from labelproof.data.unicode_forms import composed

__all__ = ["FolderListing", "list_folder", "load_folder"]


@dataclass
class FolderListing:
    """What lies in a folder of images, before any image is opened.

    Attributes:
        splits: For each split, for each class, its files in order.
        empty: Class folders without an image, as `split/class` where there are splits.
        hidden: Files and folders whose name begins with a dot.
        ignored: Files that are not images by their ending.
        loose: Images that lie beside the class folders, in no class.
        loops: Links to a folder that they are in.
        unnamed: Class folders whose name is not UTF-8, as they are shown.
    """

    splits: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)

    @property
    def class_names(self) -> tuple[str, ...]:
        """All classes that have an image in some split, in order."""
        return order_classes(
            name for classes in self.splits.values() for name, files in classes.items() if files
        )

    @property
    def num_images(self) -> int:
        """Images in all classes of all splits."""
        return sum(len(files) for classes in self.splits.values() for files in classes.values())


def load_folder(
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
    few_classes: bool = False,
) -> Dataset:
    """Read a folder that has a folder of images for each class.

    At the top there may be folders `train`, `val` and `test` (or `training`, `valid`,
    `validation`, `dev`, `testing`) with the class folders in them; without them everything is
    there to train on. Images may lie deeper within a class folder. Classes are sorted by name,
    files by path, the same on every system.

    Args:
        path: The folder.
        on_error: What becomes of images that cannot be read: `"raise"` looks at every header and
            refuses the folder, `"skip"` decodes everything once and leaves them out with a warning.
        short_side: Resize to this shorter side while decoding.
        few_classes: Whether fewer than two classes will do, and as many as images: to measure on,
            and not to learn from.

    Returns:
        A dataset whose images are decoded when they are asked for. Its labels count as not clean.

    Raises:
        ValueError: There are no images, fewer than two classes, or images that cannot be read.

    Warns:
        DataWarning: Something was left out (an empty class, files that are not images), or looks
            wrong (the same image in two classes).

    Example:
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
    if not few_classes:
        _refuse_wrapper(os.fspath(path), names, listing)
        num_images = sum(len(files) for files in listing.splits["train"].values())
        check_classes(place, names, num_images=num_images)
    index = {name: number for number, name in enumerate(names)}
    splits = {
        split: LabelledFiles(
            [file for name in names for file in classes.get(name, ())],
            [index[name] for name in names for _ in classes.get(name, ())],
        )
        for split, classes in listing.splits.items()
    }
    if on_error != "later":
        for split, copies in report_duplicates(place, splits).items():
            groups = join_groups(len(splits[split].labels), copies)
            groups = if_cuttable(groups, splits[split].labels)
            splits[split] = replace(splits[split], groups=groups)
    return dataset_from_files(
        readable(Path(path).resolve().name),
        splits,
        names,
        on_error=on_error,
        short_side=short_side,
    )


def list_folder(path: str | os.PathLike[str]) -> FolderListing:
    """List the images of a folder by split and class, and count everything else.

    >>> folder = getfixture("tmp_path")
    >>> for name in ("cat/1.jpg", "cat/notes.txt", "dog/1.jpg", ".cache"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     (folder / name).touch()
    >>> listing = list_folder(folder)
    >>> listing.num_images, len(listing.ignored), len(listing.hidden)
    (2, 1, 1)
    """
    root = os.fspath(path)
    if not os.path.isdir(root):
        if not os.path.exists(root):
            raise FileNotFoundError(f"path: expected a folder, got {readable(root)}: there is none")
        raise NotADirectoryError(f"path: expected a folder, got the file {readable(root)}")
    listing = FolderListing()
    top = _entries(root, listing)
    folders = _split_folders(root, top)
    for split, folder in folders.items():
        listing.splits[split] = _classes(folder, listing, root=root)
    if root not in folders.values():
        _count_beside(top, listing)
    return listing


def _split_folders(root: str, top: Sequence[os.DirEntry[str]]) -> Mapping[str, str]:
    """Which folder is which split; the root itself is all training data if there are none."""
    folders = {entry.name: entry.path for entry in top if _is_folder(entry)}
    named: dict[str, list[str]] = {}
    for name in folders:
        if split := split_name(name):
            named.setdefault(split, []).append(name)
    others = sorted(name for name in folders if split_name(name) is None)
    holding = [name for names in named.values() for name in names if _holds_folders(folders[name])]
    # "train" may be a class, between "bus" and "tram": a split holds folders, a class images.
    if not named or (others and (len(named) < 2 or not holding)):
        return {"train": root}
    if not holding:
        found = " and ".join(split for split in SPLITS if split in named)
        raise ValueError(
            f"path: expected a folder for each class in {found} of {readable(root)}, got none; "
            "labels that are not folders can be given in a manifest"
        )
    for split, names in named.items():
        if len(names) > 1:
            raise ValueError(
                f"path: {readable(root)} has {' and '.join(names)}, which both mean {split}; "
                "rename one of them"
            )
    if "train" not in named:
        raise ValueError(
            f"path: expected a folder train beside {', '.join(sorted(named))} in {readable(root)}"
        )
    if others:
        notice(f"{readable(root)}: left out, not one of train, val and test: {few(others)}")
    return {split: folders[named[split][0]] for split in SPLITS if split in named}


def _classes(folder: str, listing: FolderListing, *, root: str) -> dict[str, list[str]]:
    """The class folders of a split and the images in each."""
    # The top was read before, to find the splits, and its hidden files are counted already.
    entries = _entries(folder, FolderListing() if folder == root else listing)
    classes: dict[str, list[str]] = {}
    within = (_identity(root), _identity(folder))
    for entry in entries:
        if not _is_folder(entry):
            continue
        # One spelling for an accented letter, which file systems store in one piece or in two.
        name = composed(readable(entry.name))
        if readable(entry.name) != entry.name:
            listing.unnamed.append(name)
        if name in classes:
            raise ValueError(
                f"path: {readable(folder)} has two folders that are both read as {name!r}; "
                "rename one of them"
            )
        classes[name] = list(_images(entry.path, listing, within=within))
        if not classes[name]:
            listing.empty.append(os.path.relpath(entry.path, root))
    _count_beside(entries, listing)
    return classes


def _images(folder: str, listing: FolderListing, *, within: tuple[object, ...]) -> Iterator[str]:
    """The images in a folder and in the folders in it; links are followed, but not in circles."""
    here = _identity(folder)
    if here in within:
        listing.loops.append(folder)
        return
    for entry in _entries(folder, listing):
        if _is_folder(entry):
            yield from _images(entry.path, listing, within=(*within, here))
        elif _suffix(entry.name) in SUFFIXES:
            yield entry.path
        else:
            listing.ignored.append(entry.path)


def _entries(folder: str, listing: FolderListing) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; hidden things are counted and left out."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda e: (composed(e.name), e.name))
    listing.hidden += [entry.path for entry in entries if entry.name.startswith(".")]
    return [entry for entry in entries if not entry.name.startswith(".")]


def _count_beside(entries: Sequence[os.DirEntry[str]], listing: FolderListing) -> None:
    for entry in entries:
        if not _is_folder(entry):
            image = _suffix(entry.name) in SUFFIXES
            (listing.loose if image else listing.ignored).append(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _holds_folders(folder: str) -> bool:
    with os.scandir(folder) as scan:
        return any(_is_folder(entry) and not entry.name.startswith(".") for entry in scan)


def _identity(folder: str) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _refuse_wrapper(root: str, names: Sequence[str], listing: FolderListing) -> None:
    """An archive is often unpacked to a folder in a folder."""
    inner = os.path.join(root, names[0])
    files = [file for classes in listing.splits.values() for file in classes.get(names[0], ())]
    if any(os.path.dirname(file) == inner for file in files):
        return  # a class that has folders beside its images
    if len(names) == 1 and os.path.isdir(inner) and _holds_folders(inner):
        raise ValueError(
            f"path: expected a folder for each class, got only {readable(names[0])!r} in "
            f"{readable(root)}, which holds folders itself; was {readable(inner)} meant?"
        )


def _report(place: str, listing: FolderListing) -> None:
    if listing.unnamed:
        notice(
            f"{place}: {count(len(listing.unnamed), 'class', 'classes')} with a name that is not "
            f"UTF-8, shown as {few(listing.unnamed)}; rename to have it shown as it is"
        )
    if listing.loops:
        notice(f"{place}: not followed, since it leads back to where it is: {few(listing.loops)}")
    report_foreign_kinds(place, listing.ignored)
    if listing.num_images:
        report_other_files(place, listing.ignored)
    if listing.loose and listing.num_images:
        notice(
            f"{place}: {count(len(listing.loose), 'image')} left out, in no class folder: "
            f"{few(listing.loose)}"
        )
    if not listing.num_images:
        raise ValueError(_nothing(place, listing))
    if not any(listing.splits["train"].values()):
        raise ValueError(f"{place}: the folder train holds no images")
    if listing.empty:
        notice(
            f"{place}: {count(len(listing.empty), 'class folder')} without an image: "
            f"{few(listing.empty)}"
        )


def _nothing(place: str, listing: FolderListing) -> str:
    message = f"{place}: expected a folder of images for each class, found no image in a folder"
    if listing.loose:
        return f"{message}, but {count(len(listing.loose), 'image')} in no class folder"
    if listing.ignored:
        kinds = Counter(_suffix(name) or "no ending" for name in listing.ignored)
        found = ", ".join(f"{number:,} x {kind}" for kind, number in kinds.most_common(5))
        return f"{message}, only files that end in {found}"
    return message
