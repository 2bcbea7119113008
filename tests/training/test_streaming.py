"""Streamed batches: the given order and the same bytes with any number of processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from made_images import make_image, write_images
from numpy.typing import NDArray
from PIL import Image
from small_runs import outcome, small, small_digits, train
from torch import Tensor

from labelproof.data import Split
from labelproof.data.images import ImageFiles, UnreadableImageError
from labelproof.training import Job, choose_examples
from labelproof.training.augmentation import Augmentation, draw_augmentation
from labelproof.training.geometry import choose_boxes
from labelproof.training.runner import fits
from labelproof.training.streaming import StreamedImages

CUT = Augmentation(resized_crop=10, flip=True)
ORDER = [7, 2, 2, 0, 5, 1, 6, 3, 4]
BROKEN, PROCESS = 8, 9


class Photos:
    """Image files, and one image that shows the process which was asked for it."""

    def __init__(self, files: ImageFiles):
        self.files = files

    def __len__(self) -> int:
        return len(self.files) + 1

    def __getitem__(self, index: int, /) -> NDArray[np.uint8]:
        if index < len(self.files):
            return self.files[index]
        deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        facts = [torch.get_num_threads() + 100 * deaf, *divmod(os.getpid() % 65536, 256)]
        return np.broadcast_to(np.array(facts, np.uint8).reshape(3, 1, 1), (3, 12, 12)).copy()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Photos:
    folder = tmp_path_factory.mktemp("photos")
    names = [f"{number}.png" for number in range(9)]
    for number, name in enumerate(names):
        make_image(number, size=(20 + number, 30 - 2 * number)).save(folder / name)
    (folder / names[BROKEN]).write_bytes(b"not an image")
    return Photos(ImageFiles([str(folder / name) for name in names]))


@pytest.fixture(scope="module")
def two_processes(photos: Photos) -> Iterator[StreamedImages]:
    with closing(StreamedImages(photos, CUT, workers=2)) as stream:
        yield stream


def drawn(count: int, seed: int = 1) -> Tensor:
    return draw_augmentation(CUT, count, torch.Generator().manual_seed(seed))


def cut_by_pillow(photos: Photos, number: int, row: Tensor) -> NDArray[np.uint8]:
    image = Image.fromarray(photos[number].transpose(1, 2, 0))
    draws = row[CUT.columns["resized_crop"]].unsqueeze(0)
    left, top, right, bottom = choose_boxes(draws, image.height, image.width)[0].tolist()
    resized = image.resize(
        (10, 10), Image.Resampling.BILINEAR, box=(left, top, right, bottom), reducing_gap=2.0
    )
    return np.asarray(resized)


def test_processes_give_the_order_and_the_bytes(photos: Photos, two_processes: StreamedImages):
    here = StreamedImages(photos, CUT)
    for epoch in range(2):
        order = ORDER[epoch:]
        draws = drawn(len(order), seed=epoch)
        batches = list(two_processes.batches(order, 4, draws=draws))
        assert [len(batch) for batch in batches] == [4, 4, len(order) - 8][: len(batches)]
        together = torch.cat(batches)
        assert together.dtype == torch.uint8
        assert torch.equal(together, torch.cat(list(here.batches(order, 3, draws=draws))))
        for place, number in enumerate(order):
            expected = cut_by_pillow(photos, number, draws[place])
            assert np.array_equal(together[place].numpy(), expected)


def test_processes_stay_and_leave_the_cores_and_ctrl_c_alone(two_processes: StreamedImages):
    def look() -> list[list[int]]:
        return [batch[0, 0, 0].tolist() for batch in two_processes.batches([PROCESS] * 4, 1)]

    facts = look()
    assert facts == look()
    assert {first for first, *_ in facts} == {101}, "one thread each, deaf to Ctrl-C"
    seen = {tuple(process) for _, *process in facts}
    assert len(seen) == 2
    assert divmod(os.getpid() % 65536, 256) not in seen


def test_an_unreadable_image_is_named(photos: Photos, two_processes: StreamedImages):
    with pytest.raises(UnreadableImageError) as here:
        list(StreamedImages(photos, CUT).batches([0, BROKEN], 2))
    assert str(here.value).startswith("image 8: ")
    with pytest.raises(UnreadableImageError) as there:
        list(two_processes.batches([0, 1, 2, BROKEN, 3, 4, 5, 6], 2))
    assert str(there.value) == str(here.value)
    assert len(list(two_processes.batches([0, 1, 2], 2))) == 2


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_an_array_streams_without_processes(channels: int):
    images = np.random.default_rng(0).integers(0, 256, (5, channels, 6, 4), dtype=np.uint8)
    stream = StreamedImages(images, Augmentation(flip=True), workers=2)
    assert stream.workers == 0
    assert stream.shape == (6, 4, channels)
    batches = list(stream.batches(torch.tensor([4, 0, 2]), [1, 2], draws=torch.zeros(3, 1)))
    assert [len(batch) for batch in batches] == [1, 2]
    assert np.array_equal(torch.cat(batches).numpy(), images[[4, 0, 2]].transpose(0, 2, 3, 1))
    (cut,) = StreamedImages(images, CUT).batches([1, 2], 2, draws=drawn(2))
    assert cut.shape == (2, 10, 10, channels)


def test_images_of_several_shapes_need_a_resized_crop(tmp_path: Path):
    write_images(tmp_path, ["a.png", "b.png"])
    make_image(3, size=(8, 9)).save(tmp_path / "c.png")
    files = ImageFiles([str(tmp_path / name) for name in ("a.png", "b.png", "c.png")])
    stream = StreamedImages(files)
    assert len(next(stream.batches([1, 0], 2))) == 2
    with pytest.raises(
        ValueError,
        match=r"image 2: .*c\.png: expected the first image's .* \(16, 24, 3\), got \(9, 8, 3\); "
        r"--augmentation resized-crop:SIZE",
    ):
        list(stream.batches([0, 1, 2], 2))


@pytest.mark.slow
def test_a_script_that_its_processes_run_again_is_told_so(tmp_path: Path):
    write_images(tmp_path, ["a.png"])
    script = (
        f"from {StreamedImages.__module__} import ImageFiles, StreamedImages\n"
        "next(StreamedImages(ImageFiles(['a.png']), workers=1).batches([0], 1))"
    )
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "under if __name__ == '__main__':" in ended.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_batches_for_a_gpu_are_pinned_and_their_processes_start_beside_it(photos: Photos):
    torch.zeros(1, device="cuda")
    with closing(StreamedImages(photos, CUT, workers=2, device="cuda")) as stream:
        batches = list(stream.batches(ORDER, 4, draws=drawn(9)))
        assert all(batch.is_pinned() for batch in batches)
        here = StreamedImages(photos, CUT).batches(ORDER, 9, draws=drawn(9))
        assert torch.equal(torch.cat(batches), next(here))
        with pytest.raises(UnreadableImageError, match=r"^image 8: "):
            list(stream.batches([BROKEN], 1))


def test_files_give_the_bytes_of_arrays_and_only_those_are_brought_to_the_device(tmp_path: Path):
    arrays = small_digits(150, 40)
    lazy = {}
    for name, split in arrays.splits.items():
        files = [str(tmp_path / f"{name}{number}.png") for number in range(len(split.array))]
        for file, image in zip(files, split.array, strict=True):
            Image.fromarray(image[0]).save(file)
        lazy[name] = Split(ImageFiles(files, mode="L"), split.labels)
    configuration = small(network="mlp(hidden=16,depth=1)", augmentation="crop:1,flip", epochs=2)
    outcomes = []
    for dataset in (arrays, replace(arrays, splits=lazy)):
        job = Job(configuration, tmp_path / str(len(outcomes)))
        train(job, load=partial(choose_examples, dataset=dataset))
        outcomes.append(outcome(job.folder))
        del outcomes[-1]["state"]  # arrays have the position of their feed in it
        assert fits(dataset, torch.device("cpu")) == (dataset is arrays)
    assert outcomes[0] == outcomes[1]
