"""Crops, flips, rotations and boxes against loops, and resizing against Pillow."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.testing import assert_close

from labelproof.training.augmentation import Augmentation, draw_augmentation
from labelproof.training.geometry import (
    ATTEMPTS,
    centre_box,
    choose_box,
    choose_boxes,
    resample,
    trace_pixels,
)

steady = settings(deadline=None, derandomize=True, max_examples=25)
sides = st.integers(1, 13)


def turn_of(degrees: float) -> torch.Tensor:
    angle = math.radians(degrees)
    return torch.tensor([[math.cos(angle), math.sin(angle)]]).mul(65536).round().div(65536)


@steady
@given(sides, sides, st.integers(-4, 4), st.integers(-4, 4), st.booleans())
def test_shift_and_mirror_are_what_loops_say(height, width, down, right, mirror):
    pixel, inside = trace_pixels(
        height,
        width,
        shift=torch.tensor([[float(down), float(right)]]),
        mirror=torch.tensor([[float(mirror)]]),
        turn=None,
    )
    assert inside is not None
    for y in range(height):
        for x in range(width):
            row, column = y + down, (width - 1 - x if mirror else x) + right
            there = 0 <= row < height and 0 <= column < width
            assert bool(inside[0, y, x]) is there
            assert pixel[0, y, x] == (row * width + column if there else 0)


@steady
@given(sides, sides, st.floats(-180, 180))
def test_rotation_is_what_loops_say(height, width, degrees):
    pixel, inside = trace_pixels(height, width, shift=None, mirror=None, turn=turn_of(degrees))
    assert inside is not None
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    for y in range(height):
        for x in range(width):
            right, down = x - (width - 1) / 2, y - (height - 1) / 2
            column = cosine * right - sine * down + (width - 1) / 2
            row = sine * right + cosine * down + (height - 1) / 2
            if any(abs(place % 1 - 0.5) < 1e-3 for place in (row, column)):
                continue  # as near to one pixel as to the next
            row, column = round(row), round(column)
            there = 0 <= row < height and 0 <= column < width
            assert bool(inside[0, y, x]) is there
            assert pixel[0, y, x] == (row * width + column if there else 0)


def test_what_a_crop_lost_a_rotation_does_not_bring_back():
    pixel, inside = trace_pixels(
        3, 3, shift=torch.tensor([[0.0, 2.0]]), mirror=None, turn=turn_of(180.0)
    )
    assert inside is not None
    # Only the last column is left of the image; turned around it is last again.
    assert inside[0].tolist() == [[0, 0, 1]] * 3
    assert pixel[0, :, 2].tolist() == [8, 5, 2]


def boxes_by_loops(row: list[float], height: int, width: int) -> list[int]:
    root = np.float32(math.sqrt(height * width))
    for attempt in range(ATTEMPTS):
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
    boxes = choose_boxes(draws, height, width)
    assert boxes.tolist() == [boxes_by_loops(row, height, width) for row in draws.tolist()]
    assert boxes.tolist() == [list(choose_box(row, height, width)) for row in draws.numpy()]
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
    ours = resample(torch.from_numpy(image)[None], box, size)[0].numpy()
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
    box = centre_box(height, width, size)
    ours = np.asarray(image.resize((size, size), Image.Resampling.BILINEAR, box=box))
    assert_close(ours.astype(int), theirs.astype(int), rtol=0, atol=1)
