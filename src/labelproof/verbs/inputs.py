"""The data of a verb, given as a path, a DataFrame, arrays or a dataset."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed

from labelproof.audit.folder import AUDIT, RUNS, SETTINGS
from labelproof.data.dataset import Dataset, refuse_classes
from labelproof.data.images import ImageFiles, OnError, look_at_each
from labelproof.data.load import Reading
from labelproof.data.notices import few, readable
from labelproof.data.published import find_human_labels, is_known
from labelproof.fitting.recipe import choose_recipe
from labelproof.losses import Loss, format_loss
from labelproof.training import Configuration, Execution, choose_execution
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.configuration import refuse_unknown
from labelproof.training.files import is_litter
from labelproof.training.geometry import short_side
from labelproof.training.provenance import MODEL, fingerprint, note_places
from labelproof.training.record import RECORD
from labelproof.training.run_folder import ATTEMPTS, LOCK, SEARCH, owning, remove_run
from labelproof.verbs.progress import Callback, Reporter, as_reporter

_MEGABYTES = {"cpu": 400, "cuda": 4000, "mps": 1000}
"""Memory for decoded images, by the type of the device."""


def is_path(data: Any) -> bool:
    """Whether data are given by their path or a dataset's name.

    >>> is_path("photos/"), is_path(("X", "y"))
    (True, False)
    """
    return isinstance(data, str | os.PathLike)


class Request:
    """The data of a verb, how to read them, and the device; the arguments are those of `fit`.

    Any other argument is a setting of `Configuration`, which `None` leaves open. A mistyped one may
    be meant for another parameter of the `verb`.

    Attributes:
        named: Whether the data are a path or a dataset's name, so that they can be read again.
        called: The name of the data in a configuration.
        place: The absolute path of the data, or their name.
        human: The file of human labels: the one given, or the one known for the data.
    """

    def __init__(
        self,
        data: Any,
        *,
        loss: str | Loss | None = None,
        device: str = "auto",
        compile: bool | None = None,
        workers: int | None = None,
        image_memory: int | None = None,
        human_labels: str | os.PathLike[str] | None = None,
        on_error: OnError = "skip",
        progress: Reporter | Callback | bool | None = None,
        verb: Callable[..., Any] | None = None,
        **more: Any,
    ):
        self.data, self.reporter = data, as_reporter(progress)
        self.loss = format_loss(loss) if isinstance(loss, Loss) else loss
        self.device, self.image_memory = device, image_memory
        self.execution = choose_execution(device, compile=compile, workers=workers)
        self.on_error: OnError = on_error
        self.reading, options = Reading.of(more), Reading.__dataclass_fields__
        self.settings = {name: value for name, value in more.items() if name not in options}
        refuse_unknown(self.settings, signature(verb).parameters if verb else ())
        self.named = is_path(data)
        name = data.name if isinstance(data, Dataset) else "table"
        self.called = os.fspath(data) if isinstance(data, str | os.PathLike) else name
        # Absolute, so that a review can start anywhere.
        path = os.path.abspath(Path(self.called).expanduser())
        self.place = path if self.named and not is_known(self.called) else self.called
        known = find_human_labels(self.called, self.reading.data_root)
        self.human = known if human_labels is None else Path(human_labels)
        self.human_labels = human_labels

    @property
    def slow(self) -> bool:
        """Whether the device is a CPU."""
        return self.execution.device.type == "cpu"

    @cached_property
    def dataset(self) -> Dataset:
        """The data; reading them also notes their columns in `reading`."""
        dataset = self.reading.load(self.data, on_error=self.on_error)
        self.reading = self.reading.found_in(dataset)
        used = [dataset.class_names[label] for label in np.unique(dataset.train.labels)]
        refuse_classes(dataset.name, used, len(dataset.train))
        return dataset

    def recipe(self, *, search: bool = False, **settings: Any) -> Configuration:
        """How to train a network on the data, with some settings given.

        A `search` tries the l1 penalty itself, with and without.
        """
        if search and settings.get("l1") is None:
            settings["l1"] = 0.0
        return choose_recipe(self.dataset, data=self.called, fast=not self.slow, **settings)

    def asked(self, configuration: Configuration, **more: Any) -> dict[str, Any]:
        """Settings and fingerprint, by which an earlier result is recognised as the same."""
        same = {"fingerprint": fingerprint(self.dataset)}
        return {**configuration.as_values(), **self.reading.as_values(), **more, **same}

    def places(self, folder: Path) -> dict[str, dict[str, str]]:
        """The paths of data and labels, as the folder of a run notes them."""
        places = note_places(self.called, self.reading.labels, self.reading.data_root, folder)
        return {name: place for name, place in places.items() if self.named or name != "data"}

    def decode(
        self,
        configuration: Configuration,
        dataset: Dataset | None = None,
        *,
        share: float = 1.0,
    ) -> Dataset:
        """The data, or some of them, with image files at the size that the network needs."""
        dataset = self.dataset if dataset is None else dataset
        if not any(isinstance(each.images, ImageFiles) for each in dataset.splits.values()):
            return dataset
        megabytes = self.image_memory
        if megabytes is None:
            megabytes = _MEGABYTES.get(self.execution.device.type, _MEGABYTES["cpu"])
        memory = int((megabytes << 20) * share)
        crop = parse_augmentation(configuration.augmentation).resized_crop
        with self.reporter.working("Decoding images") as status:

            def progress(done: int, total: int) -> None:
                status.update(f"Decoding images: {done:,} of {total:,}")

            return bring_to_size(dataset, crop, memory=memory, progress=progress)


def bring_to_size(
    dataset: Dataset,
    crop: int,
    *,
    memory: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Dataset:
    """The same dataset with its image files at the size that crops of `crop` pixels need.

    A network that sees crops of 224 pixels does not need photos of ten megapixels decoded in every
    epoch. If all images fit in memory at the smaller size, they are decoded once; otherwise they
    are decoded at that size on each access.

    Args:
        dataset: A dataset whose images are files, decoded on access.
        crop: Side of the crops that the network sees; 0 for whole images, which become arrays if
            all of a split have one size.
        memory: Bytes for all images; if they need more, they stay files.
        progress: Called with the number of images decoded so far, and the number of all.
    """
    side, channels = short_side(crop), dataset.input_shape[0]
    images: dict[str, Any] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, split in dataset.splits.items():
        if isinstance(files := split.images, ImageFiles):
            shapes[name] = (len(files), *((channels, side, side) if crop else files[0].shape))
            resized = ImageFiles(files.files, mode=files.mode, short_side=side)
            images[name] = resized if crop else files
    fits = sum(math.prod(shape) for shape in shapes.values()) <= memory
    # `one_size` comes last, since it opens every file.
    if fits and (crop or all(files.one_size for files in images.values())):
        total, done = sum(map(len, images.values())), 0
        for name, files in list(images.items()):
            images[name] = np.empty(shapes[name], dtype=np.uint8)
            height, width = shapes[name][2:]
            for index, image in enumerate(look_at_each(range(len(files)), files.__getitem__)):
                top, left = (image.shape[1] - height) // 2, (image.shape[2] - width) // 2
                images[name][index] = image[:, top : top + height, left : left + width]
                done += 1
                if done % 256 == 0 or done == total:
                    progress(done, total)
    splits = {name: replace(dataset.splits[name], images=images[name]) for name in images}
    return replace(dataset, splits={**dataset.splits, **splits})


RUN_FILES, AUDIT_FILES = {MODEL, RECORD, ATTEMPTS, SEARCH}, {AUDIT, SETTINGS, RUNS}
"""Files by which a run or an audit is recognised: one of them is written first."""


class TemporaryFolder:
    """A folder that is removed with this object, and at the end of the program."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="labelproof-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def choose_folder(
    output: str | os.PathLike[str] | None, name: str
) -> tuple[Path, TemporaryFolder | None]:
    """The folder `output`; without one, `name` in a new temporary folder."""
    if output is not None:
        return Path(output).expanduser(), None
    keeper = TemporaryFolder()
    return keeper.path / name, keeper


def refuse_foreign(folder: Path, ours: set[str]) -> None:
    """Refuse a folder that holds files, and none of ours.

    Results among other files are hard to find and to remove, and a mistyped `--output` may be the
    folder of the data.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> refuse_foreign(folder, RUN_FILES)
        >>> _ = (folder / "holiday.jpg").write_text("")
        >>> refuse_foreign(folder, RUN_FILES)
        Traceback (most recent call last):
            ...
        ValueError: --output: expected an empty folder, got ..., which holds holiday.jpg
    """
    if not folder.is_dir():
        return
    names = {entry.name for entry in folder.iterdir() if not is_litter(entry.name)} - {LOCK}
    if names and not names & ours:
        holds = f"{readable(str(folder))}, which holds {few(sorted(names))}"
        raise ValueError(f"--output: expected an empty folder, got {holds}")


def take_over(folder: Path, execution: Execution, *, fresh: bool) -> None:
    """Check that no other process trains in the folder, and remove the run there if `fresh`."""
    if execution.rank == 0:
        refuse_foreign(folder, RUN_FILES)
        with owning(folder):
            if fresh:
                remove_run(folder)
    if execution.world_size > 1:
        # The other processes must not find a checkpoint that is about to be removed.
        torch.distributed.barrier()
