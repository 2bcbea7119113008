"""A dataset of a few images that stands in the catalogue, with files like those of MNIST."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from cifar_files import cifar10_records

from labelproof.data.cifar import CIFAR10_LAYOUTS
from labelproof.data.published import DATASETS, IdxLayout, KnownDataset, PublishedFile, idx_bytes

SIZES = {"train": 6, "test": 4}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tiny_contents() -> dict[str, bytes]:
    """The four uncompressed IDX files."""
    generator = np.random.default_rng(0)
    contents = {}
    for prefix, count in (("train", SIZES["train"]), ("t10k", SIZES["test"])):
        images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        contents[f"{prefix}-images-idx3-ubyte"] = idx_bytes(images)
        contents[f"{prefix}-labels-idx1-ubyte"] = idx_bytes(np.arange(count, dtype=np.uint8))
    return contents


def tiny_files() -> dict[str, bytes]:
    """The four files as they are served."""
    return {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in tiny_contents().items()}


def tiny_idx(address: str) -> KnownDataset:
    """The catalogue's entry for them."""
    return replace(
        DATASETS["mnist"],
        name="tiny",
        counts=SIZES,
        files=tuple(
            PublishedFile(name, len(data), sha256(data), (f"{address}/pub/",))
            for name, data in tiny_files().items()
        ),
        layouts=(IdxLayout(("tiny",)),),
        checksums={name: sha256(data) for name, data in tiny_contents().items()},
    )


def tar_gz(files: Mapping[str, bytes]) -> bytes:
    """An archive of files, by their paths in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0)  # the same bytes each time


def tiny_cifar_archive() -> bytes:
    """The binary version of a CIFAR-10 of twelve images."""
    folder = CIFAR10_LAYOUTS[0].folder
    files = {f"{folder}/{name}": data.tobytes() for name, data in cifar10_records().items()}
    names = "\n".join(f"class{number}" for number in range(10)).encode()
    extras = {f"{folder}/batches.meta.txt": names, f"{folder}/readme.html": b"<html>"}
    return tar_gz({**files, **extras})


def tiny_cifar(address: str, archive: bytes) -> KnownDataset:
    """The catalogue's entry for it."""
    layout = CIFAR10_LAYOUTS[0]
    place = (f"{address}/pub/",)
    return replace(
        DATASETS["cifar10"],
        counts={"train": 10, "test": 2},
        files=(PublishedFile(layout.archive, len(archive), sha256(archive), place, layout),),
        checksums={name: sha256(data.tobytes()) for name, data in cifar10_records().items()},
    )
