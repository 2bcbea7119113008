"""What a run was trained on, and how to use its network.

A configuration holds the name of the data, not their content: a run on another label column,
another file of human labels or corrected rows would look the same. So a run's folder has a
fingerprint of its data (`fingerprint.json`) and a description of its network (`model.json`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles, StoredImage
from labelproof.data.notices import readable
from labelproof.data.published import is_known
from labelproof.models.text import is_factory, make_network
from labelproof.noise import parse_noise
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.files import read_fields, read_json, write_text
from labelproof.training.record import RECORD, read_record

MODEL = "model.json"

FINGERPRINT = "fingerprint.json"
"""The file with the fingerprint of a run's data."""


@dataclass(frozen=True)
class Description:
    """A network and its inputs.

    Attributes:
        network: The network as text.
        input_shape: Channels, height and width of the network's input.
        class_names: The name of each output.
        mean: Per-channel mean of pixels scaled to 0..1.
        std: Per-channel standard deviation of such pixels.
        crop: Side of the centre crop of images, or 0 for none.
        columns: The encoding of a table's columns, as plain values; `None` for images.
        label: The label column of a table.
        text_labels: Whether labels are text even if they look like numbers.
    """

    network: str
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: int = 0
    columns: dict[str, Any] | None = None
    label: str | None = None
    text_labels: bool = False

    def make_network(
        self, generator: torch.Generator | None = None, *, pretrained: bool = True
    ) -> nn.Module:
        """The network, with initial weights; see `make_network` of `labelproof.models`."""
        network = make_network(
            self.network,
            num_classes=len(self.class_names),
            input_shape=self.input_shape,
            generator=generator,
            pretrained=pretrained,
        )
        if is_factory(self.network):
            self._try(network)
        return network

    def _try(self, network: nn.Module) -> None:
        """Refuse a network of the user's own that does not give logits of the classes."""
        expected = (
            f"network: expected {self.network} to take inputs of shape (N, "
            f"{', '.join(map(str, self.input_shape))}) and to give logits of shape (N, "
            f"{len(self.class_names)})"
        )
        training = network.training
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                found: Any = network.eval()(torch.zeros(2, *self.input_shape))
        except Exception as error:
            raise ValueError(f"{expected}; {type(error).__name__}: {error}") from error
        network.train(training)
        shape = getattr(found, "shape", None)
        if not isinstance(found, torch.Tensor) or shape != (2, len(self.class_names)):
            got = (
                type(found).__name__ if shape is None else f"(N, {', '.join(map(str, shape[1:]))})"
            )
            raise ValueError(f"{expected}, got {got}")


def describe(configuration: Configuration, dataset: Dataset) -> Description:
    """The description of the network that a configuration trains on a dataset.

    Raises:
        ValueError: The configuration augments the rows of a table.
    """
    augmentation = parse_augmentation(configuration.augmentation)
    if dataset.tabular and augmentation.columns:
        raise ValueError(f"augmentation: expected none for the rows of a table, got {augmentation}")
    crop = augmentation.resized_crop
    shape = dataset.input_shape
    return Description(
        network=configuration.network,
        input_shape=(shape[0], crop, crop) if crop else shape,
        class_names=tuple(dataset.class_names),
        mean=tuple(dataset.mean),
        std=tuple(dataset.std),
        crop=crop,
        columns=None if dataset.columns is None else dataset.columns.as_values(),
        label=dataset.label,
        text_labels=dataset.text_labels,
    )


def write_description(folder: Path, description: Description) -> None:
    """Write a description into a run's folder."""
    write_text(folder / MODEL, json.dumps(asdict(description), indent=1) + "\n")


def read_description(folder: Path) -> Description:
    """Read the description from a run's folder.

    Raises:
        FileNotFoundError: The folder is not a run's.
        ValueError: The file is corrupted.
    """
    path = folder / MODEL
    if not path.exists():
        lacks = f"it has no {MODEL}" if folder.exists() else "there is no such folder"
        raise FileNotFoundError(
            f"{folder} is not the folder of a run: {lacks}; 'labelproof fit' and 'labelproof "
            "train' make such folders"
        )
    try:
        read = read_fields(Description, read_json(path))
        shape, std = read.input_shape, read.std
        if not (
            len(shape) in (1, 3)
            and all(0 < side < 1 << 24 for side in shape)
            and len(read.mean) == len(std) == shape[0]
            and min(std) > 0
            and len(read.class_names) > 1
            and read.crop >= 0
        ):
            raise ValueError(f"impossible values: {read}")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not a description of a network ({str(error)[:250]})") from None
    return read


_LARGEST_WHOLE = 64 << 20
"""Bytes up to which an array is hashed whole; of a larger one, evenly spaced rows are."""


def fingerprint(dataset: Dataset, *, given: NDArray[np.int64] | None = None) -> str:
    """A hash that changes when labels, classes, examples or their files change.

    It covers the sizes and names of files, relative to their common folder, which may be moved, and
    some rows of large arrays. It does not notice changed pixels in a file of the same size. No
    image is decoded.

    Args:
        dataset: The data.
        given: Training labels that replace the dataset's own, such as human labels, `(N)`.
    """
    digest = hashlib.sha256("\0".join(dataset.class_names).encode("utf-8", "surrogateescape"))
    for name, split in dataset.splits.items():
        digest.update(name.encode("utf-8", "surrogateescape"))
        digest.update(_label_bytes(split.labels))
        images = split.images
        if isinstance(images, np.ndarray):
            step = max(images.nbytes // _LARGEST_WHOLE, 1)
            digest.update(np.ascontiguousarray(images[::step]).tobytes())
        elif isinstance(images, ImageFiles):
            for name, size in _files(images):
                digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
                digest.update(size.to_bytes(8, "little"))
    if dataset.group is not None:
        digest.update(b"group" + dataset.grouping.encode())
    if given is not None:
        digest.update(b"given" + _label_bytes(given))
    return digest.hexdigest()[:16]


def _label_bytes(labels: NDArray[np.int64]) -> bytes:
    return np.ascontiguousarray(labels, "<i8").tobytes()


def _files(images: ImageFiles) -> Iterator[tuple[str, int]]:
    """The name of each image within the common folder, and the size of its file or 0."""
    yield from ((file.name, 0) for file in images.files if isinstance(file, StoredImage))
    files = [file for file in images.files if isinstance(file, str)]
    # Not `commonpath`, which refuses a mix of absolute and relative paths; cut at a folder.
    outside = os.path.commonprefix(files).rfind(os.sep) + 1  # noqa: RUF071
    for file in files:
        size = os.path.getsize(file) if os.path.exists(file) else 0
        yield file[outside:].replace(os.sep, "/"), size


class OtherDataError(ValueError):
    """The folder holds a run, or an audit, of other data."""


def other_data(folder: Path, data: str | None, kind: str = "a run") -> OtherDataError:
    """An error that names the folder's data, if known."""
    whose = f"it is of {readable(data)}, whose " if isinstance(data, str) else ""
    anew = ", which keeps the decisions of a review" if kind == "an audit" else ""
    return OtherDataError(
        f"{folder} holds {kind} of other data: {whose}labels, files or rows have changed since, or "
        "others were asked for; choose another folder (--output, or --runs of bench), or start "
        f"anew with --fresh{anew}"
    )


def mark_data(configuration: Configuration, examples: Examples) -> str:
    """The fingerprint of a run's training data."""
    # All noise but human labels follows from the labels and the configuration.
    human = parse_noise(configuration.noise).kind == "human"
    return fingerprint(examples.dataset, given=examples.given if human else None)


def refuse_other_data(folder: Path, fingerprint: Callable[[], str]) -> None:
    """Refuse to resume a run that was trained on other data, or to report it as finished.

    A run without a fingerprint is assumed to be on these data. One without a checkpoint or record
    is not checked.

    Raises:
        OtherDataError: The run is on other data.
        ValueError: The fingerprint's file is corrupted.
    """
    if not (folder / RECORD).exists() and not any((folder / "checkpoint").glob("*")):
        return
    noted = read_note(folder)
    if noted is not None and noted != fingerprint():
        record = read_record(folder)
        raise other_data(folder, None if record is None else record.configuration.get("data"))


def note_data(folder: Path, fingerprint: str) -> None:
    """Write the fingerprint of the data into a run's folder."""
    write_text(folder / FINGERPRINT, json.dumps({"fingerprint": fingerprint}) + "\n")


def read_note(folder: Path) -> str | None:
    """Read the fingerprint that `note_data` wrote; `None` if there is none.

    Raises:
        ValueError: The file is corrupted.
    """
    path = folder / FINGERPRINT
    try:
        return str(read_json(path)["fingerprint"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path}: not what labelproof writes there ({error}); start anew with --fresh, or "
            "choose another folder with --output"
        ) from None


def note_place(path: str | os.PathLike[str], folder: Path) -> dict[str, str]:
    """The location of data: their absolute path, and the path relative to a run's folder.

    Example:
        >>> noted = note_place("/srv/data/cust.csv", Path("/srv/cust-fit"))
        >>> noted["path"], noted["from_run"]
        ('/srv/data/cust.csv', '../data/cust.csv')
    """
    whole = os.path.abspath(Path(path).expanduser())
    try:
        relative = os.path.relpath(whole, os.path.realpath(folder))
        # With slashes, which every system accepts: run and data may be moved to another system.
        return {"path": whole, "from_run": relative.replace(os.sep, "/")}
    except ValueError:  # on another drive
        return {"path": whole}


def note_places(
    data: str,
    labels: str | os.PathLike[str] | None,
    root: str | os.PathLike[str] | None,
    folder: Path,
) -> dict[str, dict[str, str]]:
    """The locations of a run's data, its labels, and the folder of published datasets, if given.

    >>> list(note_places("mnist", None, "sets", Path("run")))
    ['data_root']
    >>> list(note_places("t.csv", "corrected.csv", None, Path("run")))
    ['data', 'labels']
    """
    known = is_known(data)
    paths = {
        "data": None if known else data,
        "labels": labels,
        "data_root": root if known else None,
    }
    return {name: note_place(path, folder) for name, path in paths.items() if path is not None}


def places_of(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> list[str]:
    """Absolute paths where a run's data may be, the likeliest first.

    The path relative to the run's folder comes first: it stays valid when both are moved together.
    The working directory comes last: it may have other data of the same name.

    Example:
        >>> noted = {"path": "/srv/t.csv", "from_run": "../t.csv"}
        >>> places_of("t.csv", Path("/moved/t-fit"), noted)[:2]
        ['/moved/t.csv', '/srv/t.csv']
    """
    known = noted or {}
    base = os.path.realpath(folder)
    places = [os.path.join(base, known["from_run"])] if "from_run" in known else []
    places += [known["path"]] if "path" in known else []
    return list(dict.fromkeys(map(os.path.abspath, (*places, os.path.expanduser(path)))))


def find_again(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> str | None:
    """The first of `places_of` that exists, or `None`.

    If that is `path` itself, it is returned as given, not made absolute.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "t.csv").write_text("")
    >>> Path(find_again("t.csv", folder / "t-fit", {"from_run": "../t.csv"})).name
    't.csv'
    """
    found = next((place for place in places_of(path, folder, noted) if os.path.exists(place)), None)
    return path if found == os.path.abspath(os.path.expanduser(path)) else found
