"""Images that are there twice, which matters most where the two are labelled differently."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

from labelproof.data.labelled_files import LabelledFiles
from labelproof.data.notices import count, notice, readable

__all__ = ["find_duplicates", "report_duplicates"]

_TAIL = 4096


def find_duplicates(paths: Sequence[str]) -> list[list[int]]:
    """Groups of indices whose files are the same byte for byte, in the order of their first.

    Only files of equal size and equal last bytes are read whole, so that looking through a folder
    of photos costs little more than listing it. Files that are empty or cannot be read are nobody's
    duplicate.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [f"{folder}/{name}" for name in "abc"]
    ...     for path, text in zip(paths, ["one", "two", "one"]):
    ...         _ = pathlib.Path(path).write_text(text)
    ...     find_duplicates(paths)
    [[0, 2]]
    """
    groups = [list(range(len(paths)))]
    for key in (_size, _tail, _digest):
        groups = [part for group in groups for part in _parts(group, paths, key)]
    return sorted(groups)


def report_duplicates(
    place: str, splits: Mapping[str, LabelledFiles]
) -> dict[str, list[list[int]]]:
    """Warn of images that are there twice: with two labels, in two splits, or just so.

    Args:
        place: What was loaded, for the message.
        splits: For each split, its files and labels; only files on disk are compared.

    Returns:
        For each split that has any, groups of its indices whose files are the same.
    """
    files: list[str] = []
    tags: list[tuple[str, int]] = []
    within: list[int] = []
    for split, content in splits.items():
        for index, label in enumerate(content.labels):
            if isinstance(file := content.files[index], str):
                files.append(file)
                tags.append((split, label))
                within.append(index)
    groups = find_duplicates(files)
    plain: list[list[int]] = []
    conflicts: list[tuple[int, int]] = []
    shared: list[tuple[int, int]] = []
    for group in groups:
        first = group[0]
        relabelled = [index for index in group if tags[index][1] != tags[first][1]]
        elsewhere = [index for index in group if tags[index][0] != tags[first][0]]
        if relabelled:
            conflicts.append((first, relabelled[0]))
        if elsewhere:
            shared.append((first, elsewhere[0]))
        if not relabelled and not elsewhere:
            plain.append(group)
    if conflicts:
        notice(
            f"{place}: {count(len(conflicts), 'image')} found with more than one label, such as "
            f"{_named(files, conflicts[0])}; at most one of the labels is right"
        )
    if shared:
        notice(
            f"{place}: {count(len(shared), 'image')} found in more than one split, such as "
            f"{_named(files, shared[0])}; accuracy on them says little"
        )
    if plain:
        extra = sum(len(group) - 1 for group in plain)
        notice(
            f"{place}: {count(extra, 'image')} found again in the same class, such as "
            f"{_named(files, plain[0])}; all are kept, and stay on one side of every cut"
        )
    copies: dict[str, list[list[int]]] = {}
    for group in groups:
        for split in splits:
            alike = [within[index] for index in group if tags[index][0] == split]
            if len(alike) > 1:
                copies.setdefault(split, []).append(alike)
    return copies


def _parts(
    group: Sequence[int], paths: Sequence[str], key: Callable[[str], Hashable]
) -> list[list[int]]:
    """Split a group by what a file's key is; what is alone or cannot be read falls out."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for index in group:
        try:
            value = key(paths[index])
        except OSError:
            continue
        if value is not None:
            found[value].append(index)
    return [part for part in found.values() if len(part) > 1]


def _size(path: str) -> int | None:
    return os.path.getsize(path) or None


def _tail(path: str) -> bytes:
    # The end of a file is pixels; its beginning may be the camera's header, the same in all.
    with open(path, "rb") as stream:
        stream.seek(max(os.path.getsize(path) - _TAIL, 0))
        return hashlib.blake2b(stream.read(), digest_size=16).digest()


def _digest(path: str) -> bytes:
    with open(path, "rb") as stream:
        digest = hashlib.blake2b(digest_size=16)
        while block := stream.read(1 << 20):
            digest.update(block)
        return digest.digest()


def _named(files: Sequence[str], group: Sequence[int]) -> str:
    return " and ".join(readable(files[index]) for index in group[:2])
