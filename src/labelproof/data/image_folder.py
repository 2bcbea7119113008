"""A folder for each class, with or without folders for training, validation and test."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from labelproof.data.dataset import Dataset, order_classes
from labelproof.data.images import LabelledFiles, OnError, dataset_from_files, is_image
from labelproof.data.notices import count, few, notice, readable
from labelproof.data.splits import SPLITS, split_name


def load_folder(
    path: str | os.PathLike[str],
    *,
    on_error: OnError = "raise",
    short_side: int | None = None,
) -> Dataset:
    """Read a folder that has a folder of images for each class.

    At the top there may be folders `train`, `val` and `test` (or `training`, `valid`,
    `validation`, `dev`, `testing`) with the class folders in them; without them all images are for
    training. Images may be deeper within a class folder, but linked folders there are not followed.
    Classes are sorted by name, files by path, the same on every system. Hidden files are ignored.

    Args:
        path: The folder.
        on_error: For unreadable images: `"raise"` checks every header and raises, `"skip"` decodes
            everything once and leaves them out with a warning.
        short_side: Resize to this shorter side while decoding.

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
    # Files `ignored` for their extension, `loose` images outside of class folders, `empty` class
    # folders, and `linked` folders within a class.
    others: dict[str, list[str]] = defaultdict(list)
    folders = _split_folders(os.fspath(path))
    listed = {split: _classes(place, others) for split, place in folders.items()}
    classes = (item for split in listed.values() for item in split.items())
    names = order_classes(name for name, files in classes if files)
    place, loose, ignored = readable(str(path)), others["loose"], others["ignored"]
    if not names:
        found = f": {count(len(loose), 'image')} in no class folder" if loose else ""
        found = found or (f": only {few(ignored)}" if ignored else "")
        raise ValueError(f"{place}: expected a folder of images for each class, found none{found}")
    if not any(listed["train"].values()):
        raise ValueError(f"{place}: the folder train holds no images")
    _report_others(place, ignored)
    for kind, word, why in (
        ("loose", "image", "left out, in no class folder"),
        ("empty", "class folder", "without an image"),
        ("linked", "linked folder", "within a class not followed"),
    ):
        if found := others[kind]:
            notice(f"{place}: {count(len(found), word)} {why}: {few(found)}")
    splits = {
        split: LabelledFiles(
            [file for name in names for file in classes.get(name, ())],
            [name for name in names for _ in classes.get(name, ())],
        )
        for split, classes in listed.items()
    }
    name = readable(Path(path).resolve().name)
    return dataset_from_files(name, splits, None, on_error, short_side)


def find_images(path: Path) -> list[str]:
    """The image file at a path, or those in a folder and its subfolders, sorted."""
    if not path.is_dir():
        return [str(path)]
    others: dict[str, list[str]] = defaultdict(list)
    place, found = readable(str(path)), _images(str(path), others)
    images, ignored = [os.path.normpath(n) for n in found if os.path.isfile(n)], others["ignored"]
    if not images:
        more = f"; {count(len(ignored), 'other file')} there: {few(ignored)}" * bool(ignored)
        raise ValueError(f"{place}: expected images in this folder, found none{more}")
    _report_others(place, ignored)
    return images


def _report_others(place: str, names: Sequence[str]) -> None:
    """Warn of files that are left out, since they have no image extension."""
    if names:
        files = f"{count(len(names), 'file')} left out"
        notice(f"{place}: {files}, not images of a kind that is read: {few(names)}")


def _split_folders(root: str) -> dict[str, str]:
    """The folder of each split; without splits, the root is `train`."""
    folders = _folders(root)
    named = {name: split for name in folders if (split := split_name(name))}
    others = [name for name in folders if name not in named]
    holding = any(_folders(folders[name]) for name in named)
    splits = {split: folders[name] for name, split in named.items()}
    # "train" may be a class, between "bus" and "tram": a split holds folders, a class images.
    if not named or (others and (len(splits) < 2 or not holding)):
        return {"train": root}
    place = readable(root)
    if not holding or "train" not in splits or len(splits) < len(named):
        got = few(list(named), shown=6)
        raise ValueError(f"{place}: expected class folders in train and other splits, got {got}")
    if others:
        notice(f"{place}: left out, not one of train, val and test: {few(others)}")
    return {split: splits[split] for split in SPLITS if split in splits}


def _classes(folder: str, others: dict[str, list[str]]) -> dict[str, list[str]]:
    """The class folders of a split and the images in each."""
    classes = {readable(name): _images(place, others) for name, place in _folders(folder).items()}
    others["empty"] += [os.path.join(folder, name) for name in classes if not classes[name]]
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name[0] != "." and not os.path.isdir(path):
            others["loose" if is_image(name) else "ignored"].append(path)
    return classes


def _images(folder: str, others: dict[str, list[str]]) -> list[str]:
    """The images in a folder and its subfolders, except linked ones, which may form cycles."""
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = [os.path.join(place, name) for name in folders]
        others["linked"] += [path for path in paths if os.path.islink(path)]
        found += [os.path.join(place, name) for name in names if not name.startswith(".")]
    found.sort(key=lambda path: path.split(os.sep))
    others["ignored"] += [path for path in found if not is_image(path)]
    return [path for path in found if is_image(path)]


def _folders(folder: str) -> dict[str, str]:
    """The paths of subfolders by their names."""
    paths = {name: os.path.join(folder, name) for name in sorted(os.listdir(folder))}
    return {n: path for n, path in paths.items() if n[0] != "." and os.path.isdir(path)}
