"""A dataset of the catalogue from its publisher, or from a mirror, into its folder."""

from __future__ import annotations

import os
import urllib.parse
from pathlib import Path

from labelproof.data.archives import extract
from labelproof.data.catalogue import KnownDataset, PublishedFile, known_dataset
from labelproof.data.checksums import sha256_of_file
from labelproof.data.cifar_layout import ARCHIVE_LIMIT
from labelproof.data.disk import disk_trouble_explained
from labelproof.data.root import data_root
from labelproof.data.transfer import DownloadError, Transfer, check_address
from labelproof.data.verification import Verification, verify_dataset

__all__ = ["MIRROR_VARIABLE", "download_dataset"]

MIRROR_VARIABLE = "LABELPROOF_MIRROR"
"""The environment variable that names a mirror."""


def download_dataset(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    mirror: str | None = None,
    transfer: Transfer | None = None,
) -> Verification:
    """Fetch a dataset, unless it is there and right already.

    Each file is used only if its SHA-256 is the published one. A transfer that was cut goes on
    where it stopped. Nothing is ever half there: files are renamed into place when they are whole.

    Args:
        name: A name of the catalogue.
        root: As for [`load_dataset`][labelproof.data.load_dataset].
        mirror: An address to fetch from in the publisher's place; `MIRROR/mnist/FILE` is asked for
            a file of MNIST. Else `LABELPROOF_MIRROR`, else the publisher.
        transfer: How to fetch: timeouts, attempts, whom to tell of the progress.

    Returns:
        Where it is now, with nothing wrong.

    Raises:
        DownloadError: It cannot be had; the message says which file to place where.

    Example:
        >>> download_dataset("digits").version
        'embedded'
    """
    dataset = known_dataset(name)
    folder = data_root(root)
    mirror = mirror or os.environ.get(MIRROR_VARIABLE)
    if mirror:
        check_address(mirror)
    there = verify_dataset(dataset.name, root=folder)
    if there.good:
        return there
    for file in dataset.files:
        _get(file, dataset, folder, mirror, transfer or Transfer())
    done = verify_dataset(dataset.name, root=folder)
    if not done.good:
        raise DownloadError(f"{dataset.name}: {'; '.join(done.problems)}")
    return done


def _get(
    file: PublishedFile, dataset: KnownDataset, root: Path, mirror: str | None, transfer: Transfer
) -> None:
    target = root / dataset.name / file.name
    if not (target.is_file() and sha256_of_file(target) == file.sha256):
        _fetch(file, dataset, root, mirror, transfer)
    if file.unpacks is not None:
        folder = target.parent / file.unpacks.folder
        with disk_trouble_explained(folder):
            extract(target, folder, members=file.unpacks.members, limit=ARCHIVE_LIMIT)
            target.unlink()


def _fetch(
    file: PublishedFile, dataset: KnownDataset, root: Path, mirror: str | None, transfer: Transfer
) -> None:
    target = root / dataset.name / file.name
    folders = (f"{mirror.rstrip('/')}/{dataset.name}/",) if mirror else file.folders
    problems = []
    for folder in folders:
        address = urllib.parse.urljoin(folder, file.name)
        try:
            transfer.fetch(address, target, size=file.size, sha256=file.sha256)
        except DownloadError as error:
            problems.append(str(error))
        else:
            return
    raise DownloadError(
        f"{'; '.join(problems)}. If you can get {file.name} another way (SHA-256 {file.sha256}), "
        f"place it in {target.parent}"
    )
