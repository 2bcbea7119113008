"""What a run was trained on, and how to use its network.

A configuration holds the data's name and not their content: another label column, another file of
human labels or corrected rows make a different run that looks the same. So a run's folder keeps a
fingerprint of its data (`fingerprint.json`), and a description of its network (`model.json`).
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
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.images import ImageFiles, StoredImage
from labelproof.data.notices import readable
from labelproof.data.published import is_known
from labelproof.noise import parse_noise
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.files import read_fields, read_json, write_text
from labelproof.training.record import RECORD, read_record

MODEL = "model.json"

BEGUN_ON = "fingerprint.json"
"""Which data a run was trained on."""


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
        columns: How the rows of a table become numbers, as plain values; `None` for images.
        label: The label column of a table.
    """

    network: str
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: int = 0
    columns: dict[str, Any] | None = None
    label: str | None = None


def describe(configuration: Configuration, dataset: Dataset) -> Description:
    """The description of what a configuration trains on a dataset."""
    crop = parse_augmentation(configuration.augmentation).resized_crop
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
    )


def write_description(folder: Path, description: Description) -> None:
    """Write it into a run's folder."""
    write_text(folder / MODEL, json.dumps(asdict(description), indent=1) + "\n")


def read_description(folder: Path) -> Description:
    """Read it from a run's folder.

    Raises:
        FileNotFoundError: The folder is not a run's.
        ValueError: The file is damaged.
    """
    path = folder / MODEL
    if not path.exists():
        lacks = f"it has no {MODEL}" if folder.exists() else "there is no such folder"
        raise FileNotFoundError(
            f"{folder} is not the folder of a run: {lacks}; 'labelproof fit' and 'labelproof "
            "train' make such folders"
        )
    try:
        found = read_fields(Description, read_json(path))
        shape, std = found.input_shape, found.std
        if not (
            len(shape) in (1, 3)
            and all(0 < side < 1 << 24 for side in shape)
            and len(found.mean) == len(std) == shape[0]
            and min(std) > 0
            and len(found.class_names) > 1
            and found.crop >= 0
        ):
            raise ValueError(f"no network takes this: {found}")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not a description of a network ({str(error)[:300]})") from None
    return found


_WHOLE = 64 << 20
"""Bytes up to which an array is read whole; of a larger one, evenly spaced rows."""


def fingerprint(dataset: Dataset, *, given: NDArray[np.int64] | None = None) -> str:
    """A short text that changes when labels, classes, examples or their files change.

    It covers the sizes of files and their names within their common folder, which may be moved, and
    of large arrays some of the rows. Changed pixels in a file of the same size go unnoticed. No
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
            step = max(images.nbytes // _WHOLE, 1)
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
    """The name of each image within their common folder, and the size of its file, if any."""
    yield from ((file.name, 0) for file in images.files if isinstance(file, StoredImage))
    files = [file for file in images.files if isinstance(file, str)]
    # By letters, since absolute and relative paths may be mixed; then up to the last whole folder.
    outside = os.path.commonprefix(files).rfind(os.sep) + 1  # noqa: RUF071
    for file in files:
        size = os.path.getsize(file) if os.path.exists(file) else 0
        yield file[outside:].replace(os.sep, "/"), size


class OtherDataError(ValueError):
    """A folder holds a run, or an audit, of other data."""


def other_data(folder: Path, data: str | None, kind: str = "a run") -> OtherDataError:
    """The error, which names the data that the folder's is of where they are known."""
    whose = f"it is of {readable(data)}, whose " if isinstance(data, str) else ""
    return OtherDataError(
        f"{folder} holds {kind} of other data: {whose}labels, files or rows have changed since, or "
        "others were asked for; choose another folder (--output, or --runs of bench), or start "
        "anew with --fresh or by removing this one"
    )


def mark_data(configuration: Configuration, examples: Examples) -> str:
    """The fingerprint of what a run learns from."""
    # All noise but people's follows from the labels and the configuration.
    human = parse_noise(configuration.noise).kind == "human"
    return fingerprint(examples.dataset, given=examples.given if human else None)


def refuse_other_data(folder: Path, fingerprint: Callable[[], str]) -> None:
    """Refuse to resume a run that was trained on other data, or to report it as finished.

    A folder without a note is assumed to be on these data, and one without a checkpoint may start
    on them.

    Raises:
        OtherDataError: The run is on other data.
        ValueError: The note is damaged.
    """
    if not (folder / RECORD).exists() and not any((folder / "checkpoint").glob("*")):
        return
    noted = read_note(folder)
    if noted is not None and noted != fingerprint():
        record = read_record(folder)
        raise other_data(folder, None if record is None else record.configuration.get("data"))


def note_data(folder: Path, fingerprint: str) -> None:
    """Note which data the run in a folder is trained on."""
    write_text(folder / BEGUN_ON, json.dumps({"fingerprint": fingerprint}) + "\n")


def read_note(folder: Path) -> str | None:
    """The fingerprint that `note_data` noted; `None` where an earlier version noted nothing.

    Raises:
        ValueError: The note is damaged.
    """
    path = folder / BEGUN_ON
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
    """Where data are, as a run's folder notes it: their whole path, and the way from the folder.

    Example:
        >>> noted = note_place("/srv/data/cust.csv", Path("/srv/cust-fit"))
        >>> noted["path"], noted["from_run"]
        ('/srv/data/cust.csv', '../data/cust.csv')
    """
    whole = os.path.abspath(Path(path).expanduser())
    try:
        way = os.path.relpath(whole, os.path.realpath(folder))
        # With slashes, which every system takes: run and data may be moved to another one.
        return {"path": whole, "from_run": way.replace(os.sep, "/")}
    except ValueError:  # on another drive
        return {"path": whole}


def note_places(
    data: str, labels: str | os.PathLike[str] | None, folder: Path
) -> dict[str, dict[str, str]]:
    """Where what a run reads is, for whoever reads it again; a dataset's name is no place.

    >>> note_places("mnist", None, Path("run")), list(note_places("t.csv", None, Path("run")))
    ({}, ['data'])
    """
    places = {} if is_known(data) else {"data": note_place(data, folder)}
    return places if labels is None else places | {"labels": note_place(labels, folder)}


def places_of(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> list[str]:
    """Where data that a run was told of may be, as whole paths, the likeliest first.

    The way from the run's folder leads to the data wherever both were moved together. The working
    directory comes last: it may have other data of the same name.

    Example:
        >>> noted = {"path": "/srv/t.csv", "from_run": "../t.csv"}
        >>> places_of("t.csv", Path("/moved/t-fit"), noted)[:2]
        ['/moved/t.csv', '/srv/t.csv']
    """
    kept = noted or {}
    ways = [os.path.join(os.path.realpath(folder), kept["from_run"])] if "from_run" in kept else []
    ways += [kept["path"]] if "path" in kept else []
    return list(dict.fromkeys(map(os.path.abspath, (*ways, os.path.expanduser(path)))))


def find_again(path: str, folder: Path, noted: Mapping[str, str] | None = None) -> str | None:
    """The first of `places_of` where there is something; `None` if there is nowhere anything.

    What is where it was said to be is called as it was said.

    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "t.csv").write_text("")
    >>> Path(find_again("t.csv", folder / "t-fit", {"from_run": "../t.csv"})).name
    't.csv'
    """
    found = next((place for place in places_of(path, folder, noted) if os.path.exists(place)), None)
    return path if found == os.path.abspath(os.path.expanduser(path)) else found
