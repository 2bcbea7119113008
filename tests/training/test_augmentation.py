"""Draws, and the pixels they make: against loops and Pillow, in any batch and precision."""

import colorsys
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.testing import assert_close

from labelproof.training import geometry
from labelproof.training.augmentation import (
    Augmentation,
    draw_augmentation,
    gather_images,
    jitter,
    parse_augmentation,
    prepare_images,
)

MEAN, STD = torch.tensor([0.49, 0.48, 0.45]), torch.tensor([0.25, 0.24, 0.26])
TEXTS = ["none", "flip", "crop:4,flip", "crop:2,flip,rotation:20", "resized-crop:7"]
TEXTS += ["jitter:0.4:0.4:0.4:0.2", "resized-crop:12,flip,rotation:30,jitter:0.4:0.4:0.4:0.2"]


@pytest.fixture(scope="module")
def images() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (20, 9, 11, 3), generator=generator, dtype=torch.uint8)


def drawn(augmentation: Augmentation, count: int, seed: int = 1) -> Tensor:
    return draw_augmentation(augmentation, count, torch.Generator().manual_seed(seed))


def gathered(images: Tensor, index: Tensor, text: str, **options: torch.dtype) -> Tensor:
    augmentation = parse_augmentation(text)
    draws = drawn(augmentation, len(images))[index]
    return gather_images(images, index, draws, augmentation, mean=MEAN, std=STD, **options)


def distances_from_uniform(values: Tensor, low: float, high: float) -> float:
    """Kolmogorov's distance, times the root of the number: above 2 once in 1500 times."""
    ordered = ((values.double() - low) / (high - low)).sort().values
    ranks = torch.arange(1, len(values) + 1) / len(values)
    return float((ordered - ranks).abs().max()) * math.sqrt(len(values))


def test_draws_are_the_seeds_and_uniform_in_their_ranges():
    augmentation = parse_augmentation(
        "resized-crop:8,crop:3,flip,rotation:20,jitter:0.4:1.5:0.3:0.1"
    )
    count = 20_000
    draws = drawn(augmentation, count)
    assert draws.shape == (count, augmentation.num_draws)
    assert draws.dtype == torch.float32
    assert draws.is_contiguous()
    assert torch.equal(draws, drawn(augmentation, count))
    assert not torch.equal(draws, drawn(augmentation, count, seed=2))
    columns = {name: draws[:, part] for name, part in augmentation.columns.items()}
    for shift in columns["crop"].unbind(1):
        times = torch.bincount((shift + 3).long(), minlength=7)
        assert len(times) == 7
        assert float((times / count * 7 - 1).abs().max()) < 0.1
    assert sorted(set(columns["flip"].flatten().tolist())) == [0.0, 1.0]
    assert abs(float(columns["flip"].mean()) - 0.5) < 0.02
    cosine, sine = columns["rotation"].unbind(1)
    assert_close(cosine**2 + sine**2, torch.ones(count), rtol=0, atol=1e-4)
    assert distances_from_uniform(torch.atan2(sine, cosine).rad2deg(), -20, 20) < 2
    ranges = [(0.6, 1.4), (0.0, 2.5), (0.7, 1.3), (-0.1, 0.1)]
    for factor, (low, high) in zip(columns["jitter"].unbind(1), ranges, strict=True):
        assert low <= float(factor.min()) < float(factor.max()) <= high + 1e-6
        assert distances_from_uniform(factor, low, high) < 2
    for start in (0, 18):
        wide, high = columns["resized_crop"][:, start : start + 2].unbind(1)
        assert distances_from_uniform(wide * high, 0.08, 1) < 2
        assert distances_from_uniform((wide / high).log(), math.log(3 / 4), math.log(4 / 3)) < 2
    for position in columns["resized_crop"][:, -2:].unbind(1):
        assert distances_from_uniform(position, 0, 1) < 2


def test_a_batch_that_was_cut_before_is_finished_the_same(images: Tensor):
    whole = parse_augmentation("flip,rotation:15,jitter:0.4:0.4:0.4:0.2")
    cut = parse_augmentation("resized-crop:5,flip,rotation:15,jitter:0.4:0.4:0.4:0.2")
    index = torch.tensor([3, 1, 8])
    ours = gather_images(images[index], None, drawn(cut, 20)[index], cut, mean=MEAN, std=STD)
    theirs = gather_images(images, index, drawn(whole, 20)[index], whole, mean=MEAN, std=STD)
    assert torch.equal(ours, theirs)


def test_an_image_depends_on_its_draws_alone(images: Tensor):
    order = torch.randperm(20, generator=torch.Generator().manual_seed(5))
    for text in TEXTS:
        whole = gathered(images, order, text)
        side = parse_augmentation(text).resized_crop
        assert whole.shape == (20, 3, side or 9, side or 11)
        assert whole.is_contiguous(memory_format=torch.channels_last)
        parts = torch.cat([gathered(images, part, text) for part in order.split([1, 7, 12])])
        assert torch.equal(whole, parts)
        for dtype in (torch.bfloat16, torch.float16):  # rounded at the end
            assert torch.equal(gathered(images, order, text, dtype=dtype), whole.to(dtype))


def test_evaluation_normalises_and_takes_the_centre(images: Tensor):
    ours = prepare_images(images, mean=MEAN, std=STD)
    assert_close(ours, ((images / 255 - MEAN) / STD).permute(0, 3, 1, 2))
    centre = prepare_images(images, mean=MEAN, std=STD, size=8)
    # The short side of 9 is what 8 needs, so nothing is resized: 9 and 11 wide lose 1 and 3.
    assert_close(centre, ours[:, :, 0:8, 1:9])


def test_it_is_one_graph_for_all_draws(images: Tensor):
    torch.compiler.reset()
    augmentation = parse_augmentation(f"crop:2,{TEXTS[-1]}")
    compiled = torch.compile(gather_images, fullgraph=True, backend="aot_eager")
    draws = drawn(augmentation, 20)

    def batch(function: Callable[..., Tensor], index: Tensor) -> Tensor:
        return function(images, index, draws[index], augmentation, mean=MEAN, std=STD)

    first, second = torch.arange(8), torch.arange(12, 20)
    assert_close(batch(compiled, first), batch(gather_images, first))
    with torch.compiler.set_stance("fail_on_recompile"):
        assert_close(batch(compiled, second), batch(gather_images, second))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("text", TEXTS)
def test_a_gpu_makes_the_same_images(images: Tensor, text: str):
    augmentation, index = parse_augmentation(text), torch.arange(20)
    draws = drawn(augmentation, 20)
    here = gather_images(images, index, draws, augmentation, mean=MEAN, std=STD)
    there = gather_images(
        images.cuda(), index.cuda(), draws.cuda(), augmentation, mean=MEAN.cuda(), std=STD.cuda()
    )
    # Means of colours are added up in another order; nothing else is.
    assert_close(there.cpu(), here, rtol=0, atol=1e-5 if "jitter" in text else 1e-6)


strengths = st.floats(0, 2)
augmentations = st.builds(
    Augmentation,
    crop=st.integers(0, 9),
    flip=st.booleans(),
    rotation=st.floats(0, 180),
    resized_crop=st.integers(0, 512),
    jitter=st.tuples(strengths, strengths, strengths, st.floats(0, 0.5)),
)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(augmentations)
def test_the_text_is_the_augmentation(augmentation: Augmentation):
    assert parse_augmentation(str(augmentation)) == augmentation


def test_there_is_one_way_to_write_each():
    for text, canonical in {
        " NONE ": "none",
        "crop:0": "none",
        "rotation:20.0, Flip ,crop: 4.0": "crop:4,flip,rotation:20",
        "jitter:0:0:0:0.1": "jitter:0:0:0:0.1",
    }.items():
        assert str(parse_augmentation(text)) == canonical


def test_what_is_refused_is_named():
    for text, named in {
        "": "got ''$",
        "crop:4,rotate:20": "got 'rotate:20'; did you mean 'rotation'",
        "crop": "got 'crop'",
        "flip:1": "got 'flip:1'",
        "crop:4,": "got ''",
        "none,flip": "got 'none'",
        "jitter:0.4:0.4": "jitter:BRIGHTNESS",
        "flip,flip": "flip once",
        "crop:1.5": "crop: .*1.5",
        "rotation:200": "rotation:",
        "resized-crop:2.5": "resized-crop:",
        "jitter:0:0:0:0.6": "hue:",
        "jitter:-1:0:0:0": "jitter:",
    }.items():
        with pytest.raises(ValueError, match=named):
            parse_augmentation(text)


GREY = np.array([0.2989, 0.587, 0.114])


def blended(image: NDArray[np.float64], other: object, factor: float) -> NDArray[np.float64]:
    return np.clip(factor * image + (1 - factor) * np.asarray(other), 0, 1)


def reference(image: NDArray[np.float64], factors: tuple[float, ...]) -> NDArray[np.float64]:
    brightness, contrast, saturation, hue = factors
    image = blended(image, 0.0, brightness)
    image = blended(image, (image @ GREY).mean(), contrast)
    image = blended(image, (image @ GREY)[..., np.newaxis], saturation)
    turned = np.empty_like(image)
    for place in np.ndindex(image.shape[:2]):
        h, s, v = colorsys.rgb_to_hsv(*image[place])
        turned[place] = colorsys.hsv_to_rgb((h + hue) % 1, s, v)
    return turned


def test_jitter_is_the_formulas_in_order_and_one_channel_has_brightness_and_contrast_only():
    images = torch.rand(3, 5, 7, 3, generator=torch.Generator().manual_seed(1))
    images[0, 0, :4] = torch.tensor([0.0, 1.0, 0.5, 0.25]).view(4, 1)  # black, white and greys
    factors = [(1.3, 0.7, 1.4, -0.2), (0.6, 1.4, 0.0, 0.5), (1.0, 1.0, 2.0, 0.11)]
    ours = jitter(images, torch.tensor(factors), strengths=(0.4, 0.4, 1.0, 0.5))
    theirs = [
        reference(image.double().numpy(), row) for image, row in zip(images, factors, strict=True)
    ]
    assert_close(ours.double().numpy(), np.stack(theirs), rtol=0, atol=2e-5)
    images = images[..., :1]
    factors = torch.tensor([[1.0, 1.0, 0.2, 0.3]] * 3)
    assert_close(jitter(images, factors, strengths=(0, 0, 1, 0.5)), images)
    darker = jitter(images, torch.tensor([[0.5, 1, 1, 0]] * 3), strengths=(0.5, 0, 0, 0))
    assert_close(darker, images / 2)


steady = settings(deadline=None, derandomize=True, max_examples=25)
sides = st.integers(1, 13)


@steady
@given(
    *(sides, sides, st.integers(-4, 4), st.integers(-4, 4), st.booleans()),
    st.one_of(st.just(0.0), st.floats(-180, 180)),
)
def test_shifts_mirrors_and_turns_are_what_loops_say(height, width, down, right, mirror, degrees):
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = torch.tensor([[cosine, sine]]).mul(65536).round().div(65536)
    pixel, inside = geometry.trace_pixels(
        height,
        width,
        crop=torch.tensor([[float(down), float(right)]]),
        flip=torch.tensor([[float(mirror)]]),
        rotation=turn if degrees else None,
    )
    for y in range(height):
        for x in range(width):
            across, along = x - (width - 1) / 2, y - (height - 1) / 2
            column = cosine * across - sine * along + (width - 1) / 2
            row = sine * across + cosine * along + (height - 1) / 2
            if any(abs(place % 1 - 0.5) < 1e-3 for place in (row, column)):
                continue  # as near to one pixel as to the next
            row, column = round(row), round(column)
            # What a crop lost, a turn does not bring back, nor the other way round.
            there = 0 <= row < height and 0 <= column < width
            row, column = row + down, (width - 1 - column if mirror else column) + right
            there = there and 0 <= row < height and 0 <= column < width
            assert bool(inside[0, y, x]) is there
            assert pixel[0, y, x] == (row * width + column if there else 0)


def boxes_by_loops(row: list[float], height: int, width: int) -> list[int]:
    root = np.float32(math.sqrt(height * width))
    for attempt in range(geometry.ATTEMPTS):
        wide, high = (round(float(np.float32(side) * root)) for side in row[2 * attempt :][:2])
        if 0 < wide <= width and 0 < high <= height:
            left, top = int(row[-1] * (width - wide + 1)), int(row[-2] * (height - high + 1))
            return [left, top, left + wide, top + high]
    wide, high = width, height
    if width / height > 4 / 3:
        wide = round(height * 4 / 3)
    elif width / height < 3 / 4:
        high = round(width * 4 / 3)
    left, top = (width - wide) // 2, (height - high) // 2
    return [left, top, left + wide, top + high]


@steady
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**31))
def test_boxes_are_what_loops_say_and_fit(height, width, seed):
    generator = torch.Generator().manual_seed(seed)
    draws = draw_augmentation(Augmentation(resized_crop=8), 5, generator)
    boxes = geometry.choose_boxes(draws, height, width)
    assert boxes.tolist() == [boxes_by_loops(row, height, width) for row in draws.tolist()]
    assert boxes.tolist() == [[*geometry.choose_box(row, height, width)] for row in draws.numpy()]
    left, top, right, bottom = boxes.unbind(1)
    assert bool(((left >= 0) & (left < right) & (right <= width)).all())
    assert bool(((top >= 0) & (top < bottom) & (bottom <= height)).all())


@steady
@given(
    *(st.integers(2, 60), st.integers(2, 60), st.integers(1, 40), st.integers(0, 2**31)),
    st.sampled_from([1, 3]),
)
def test_resizing_is_pillows(height, width, size, seed, channels):
    numbers = np.random.default_rng(seed)
    image = numbers.integers(0, 256, (height, width, channels), dtype=np.uint8)
    left, right = sorted(numbers.choice(width + 1, 2, replace=False).tolist())
    top, bottom = sorted(numbers.choice(height + 1, 2, replace=False).tolist())
    pillow = Image.fromarray(image if channels == 3 else image[..., 0])
    theirs = pillow.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, right, bottom))
    box = torch.tensor([[left, top, right, bottom]], dtype=torch.float32)
    ours = geometry.resample(torch.from_numpy(image)[None], box, size)[0].numpy()
    off = ours.astype(int) - np.asarray(theirs).reshape(size, size, channels)
    # Each of two passes may round a half the other way, since weights are whole numbers.
    assert np.abs(off).max() <= 2


@pytest.mark.parametrize(("height", "width"), [(40, 64), (64, 40), (57, 57), (20, 23)])
def test_the_centre_box_is_resizing_and_cutting(height: int, width: int):
    size, short = 28, 32
    image = Image.fromarray(
        np.random.default_rng(2).integers(0, 256, (height, width), dtype=np.uint8)
    )
    factor = short / min(height, width)
    whole = image.resize((int(width * factor), int(height * factor)), Image.Resampling.BILINEAR)
    left, top = (whole.width - size) // 2, (whole.height - size) // 2
    theirs = np.asarray(whole.crop((left, top, left + size, top + size)))
    box = geometry.centre_box(height, width, size)
    ours = np.asarray(image.resize((size, size), Image.Resampling.BILINEAR, box=box))
    assert_close(ours.astype(int), theirs.astype(int), rtol=0, atol=1)
