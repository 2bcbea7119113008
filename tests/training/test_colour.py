"""Colour jitter against formulas pixel by pixel, and the standard library's HSV."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from labelproof.training.colour import (
    change_brightness,
    change_contrast,
    change_hue,
    change_saturation,
    jitter,
)

GREY = np.array([0.2989, 0.587, 0.114])


def photos(count: int = 3, *, channels: int = 3) -> Tensor:
    images = torch.rand(count, 5, 7, channels, generator=torch.Generator().manual_seed(1))
    images[0, 0, :4] = torch.tensor([0.0, 1.0, 0.5, 0.25]).view(4, 1)  # black, white and greys
    return images


def column(*factors: float) -> Tensor:
    return torch.tensor(factors).view(-1, 1, 1, 1)


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


def test_jitter_is_the_formulas_in_order():
    images = photos()
    factors = [(1.3, 0.7, 1.4, -0.2), (0.6, 1.4, 0.0, 0.5), (1.0, 1.0, 2.0, 0.11)]
    ours = jitter(images, torch.tensor(factors), strengths=(0.4, 0.4, 1.0, 0.5))
    theirs = [
        reference(image.double().numpy(), row) for image, row in zip(images, factors, strict=True)
    ]
    assert_close(ours.double().numpy(), np.stack(theirs), rtol=0, atol=2e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_factors_of_one_change_nothing(channels: int):
    images = photos(channels=channels)
    neutral = torch.tensor([[1.0, 1.0, 1.0, 0.0]] * 3)
    ours = jitter(images, neutral, strengths=(1.0, 1.0, 1.0, 0.5))
    assert_close(ours, images, rtol=0, atol=1e-6)


def test_a_step_of_strength_zero_is_left_out():
    images = photos()
    wild = torch.tensor([[3.0, 3.0, 3.0, 0.4]] * 3)
    assert jitter(images, wild, strengths=(0, 0, 0, 0)) is images


def test_limits():
    images = photos()
    grey = (images.double().numpy() @ GREY)[..., np.newaxis]
    assert not change_brightness(images, column(0, 0, 0)).any()
    flat = change_contrast(images, column(0, 0, 0))
    assert_close(flat.amax(dim=(1, 2)), flat.amin(dim=(1, 2)), rtol=0, atol=0)
    assert_close(flat[:, 0, 0, 0].double().numpy(), grey.mean(axis=(1, 2, 3)), rtol=0, atol=1e-6)
    grey_image = change_saturation(images, column(0, 0, 0)).double().numpy()
    assert_close(grey_image, np.repeat(grey, 3, axis=3), rtol=0, atol=1e-6)


def test_hues_go_around_and_keep_light_and_dark():
    images = photos()
    third = change_hue(images, column(1 / 3, 1 / 3, 1 / 3))
    assert_close(third, images.roll(1, dims=-1), rtol=0, atol=1e-5)
    turned = change_hue(images, column(0.1, -0.3, 0.5))
    assert_close(turned.amax(dim=-1), images.amax(dim=-1))
    assert_close(turned.amin(dim=-1), images.amin(dim=-1), rtol=0, atol=1e-6)
    assert_close(change_hue(turned, column(-0.1, 0.3, 0.5)), images, rtol=0, atol=1e-5)


def test_one_channel_has_brightness_and_contrast_only():
    images = photos(channels=1)
    factors = torch.tensor([[1.0, 1.0, 0.2, 0.3]] * 3)
    assert_close(jitter(images, factors, strengths=(0, 0, 1, 0.5)), images)
    darker = jitter(images, torch.tensor([[0.5, 1, 1, 0]] * 3), strengths=(0.5, 0, 0, 0))
    assert_close(darker, images / 2)


def test_other_channels_have_no_colours():
    with pytest.raises(ValueError, match="1 or 3 channels, got 4"):
        jitter(torch.rand(1, 2, 2, 4), torch.ones(1, 4), strengths=(1, 1, 1, 0))
