"""Training on images that are decoded on the way is training on the same images in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save

from labelproof.data import Dataset, Split, load_digits
from labelproof.data.images import ImageFiles
from labelproof.training import Configuration, Job, choose_examples, choose_execution, train_runs
from labelproof.training.checkpoint import load_weights
from labelproof.training.runner import fits

CONFIGURATION = Configuration(
    "digits",
    noise="symmetric:0.3",
    network="mlp(hidden=16,depth=1)",
    augmentation="crop:1,flip",
    epochs=2,
    batch_size=32,
)


def files(folder: Path, images: np.ndarray) -> ImageFiles:
    folder.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image[0]).save(folder / f"{number}.png")
    return ImageFiles([str(folder / f"{number}.png") for number in range(len(images))], mode="L")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Dataset]:
    """Some digits as arrays, and the same as files."""
    whole = load_digits()
    count = {"train": 150, "test": 40}
    arrays = {
        name: Split(split.array[: count[name]], split.labels[: count[name]])
        for name, split in whole.splits.items()
    }
    folder = tmp_path_factory.mktemp("digits")
    lazy = {
        name: Split(files(folder / name, split.array), split.labels)
        for name, split in arrays.items()
    }
    return replace(whole, splits=arrays), replace(whole, splits=lazy)


def outcome(
    folder: Path, dataset: Dataset, configuration: Configuration, *, workers: int
) -> tuple[bytes, bytes]:
    execution = choose_execution("cpu", workers=workers)
    events = list(
        train_runs(
            [Job(configuration, folder)],
            execution,
            load=lambda chosen: choose_examples(chosen, dataset),
        )
    )
    assert events[-1].kind == "finished"
    weights = save(load_weights(folder / "checkpoint"))
    return weights, (folder / "metrics.jsonl").read_bytes()


def test_files_give_the_bytes_of_arrays(tmp_path: Path, digits: tuple[Dataset, Dataset]) -> None:
    arrays, lazy = digits
    expected = outcome(tmp_path / "arrays", arrays, CONFIGURATION, workers=0)
    assert outcome(tmp_path / "here", lazy, CONFIGURATION, workers=0) == expected


@pytest.mark.slow
def test_other_processes_decode_the_same(tmp_path: Path, digits: tuple[Dataset, Dataset]) -> None:
    _, lazy = digits
    resized = replace(CONFIGURATION, augmentation="resized-crop:12,flip,jitter:0.4:0.4:0:0")
    expected = outcome(tmp_path / "here", lazy, resized, workers=0)
    assert outcome(tmp_path / "workers", lazy, resized, workers=2) == expected


def test_resized_crops_change_what_the_network_sees(
    tmp_path: Path, digits: tuple[Dataset, Dataset]
) -> None:
    arrays, _ = digits
    resized = replace(CONFIGURATION, augmentation="resized-crop:12")
    outcome(tmp_path, arrays, resized, workers=0)
    description = (tmp_path / "model.json").read_text(encoding="utf-8")
    assert '"crop": 12' in description


def test_what_lies_in_memory_is_brought_to_the_device(digits: tuple[Dataset, Dataset]) -> None:
    arrays, lazy = digits
    assert fits(arrays, torch.device("cpu"))
    assert not fits(lazy, torch.device("cpu"))
