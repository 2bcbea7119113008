"""Augmentation as text, both ways, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.training.augmentation import Augmentation, parse_augmentation

steady = settings(deadline=None, derandomize=True, max_examples=100)
strengths = st.floats(0, 2)
augmentations = st.builds(
    Augmentation,
    crop=st.integers(0, 9),
    flip=st.booleans(),
    rotation=st.floats(0, 180),
    resized_crop=st.integers(0, 512),
    jitter=st.tuples(strengths, strengths, strengths, st.floats(0, 0.5)),
)


@steady
@given(augmentations)
def test_the_text_is_the_augmentation(augmentation: Augmentation):
    assert parse_augmentation(str(augmentation)) == augmentation


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("none", "none"),
        (" NONE ", "none"),
        ("crop:0", "none"),
        ("crop:4,flip,rotation:20", "crop:4,flip,rotation:20"),
        ("rotation:20.0, Flip ,crop: 4.0", "crop:4,flip,rotation:20"),
        (
            "flip,jitter:.4:0.40:0.4:0.2,resized-crop:224",
            "resized-crop:224,flip,jitter:0.4:0.4:0.4:0.2",
        ),
        ("jitter:0:0:0:0.1", "jitter:0:0:0:0.1"),
    ],
)
def test_there_is_one_way_to_write_each(text: str, canonical: str):
    assert str(parse_augmentation(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"got ''$"),
        ("flipp", r"got 'flipp'; did you mean 'flip'\?$"),
        ("crop:4,rotate:20", r"got 'rotate:20'; did you mean 'rotation'\?$"),
        ("resized:224", r"did you mean 'resized-crop'\?$"),
        ("zoom:2", r"got 'zoom:2'$"),
        ("crop", r"crop:PIXELS, .* got 'crop'$"),
        ("flip:1", r"got 'flip:1'"),
        ("crop:four", r"got 'crop:four'"),
        ("crop:nan", r"crop: expected a finite number, got nan"),
        ("crop:4,", r"got ''$"),
        ("none,flip", r"got 'none'"),
        ("jitter:0.4:0.4", r"jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE, got 'jitter:0.4:0.4'"),
        ("flip,flip", r"expected flip once, got it again in 'flip,flip'"),
        ("crop:1.5", r"crop: expected a whole number of at least 0, got 1.5 in 'crop:1.5'"),
        ("crop:-4", r"crop: expected a whole number"),
        ("rotation:200", r"rotation: expected a number in \[0, 180\], got 200"),
        ("resized-crop:2.5", r"resized-crop: expected a whole number"),
        ("jitter:0:0:0:0.6", r"jitter's hue: expected a number in \[0, 0.5\], got 0.6"),
        ("jitter:-1:0:0:0", r"jitter: expected a number in \[0, ∞\), got -1"),
    ],
)
def test_what_is_refused_is_named(text: str, message: str):
    with pytest.raises(ValueError, match=r"^augmentation: .*" + message):
        parse_augmentation(text)


@pytest.mark.parametrize("jitter", [(0.4, 0.4, 0.4), [0.4] * 4, 0.4])
def test_jitter_is_four_numbers(jitter: object):
    with pytest.raises(ValueError, match="jitter: expected four numbers"):
        Augmentation(jitter=jitter)  # pyright: ignore[reportArgumentType]


def test_flip_is_true_or_false():
    with pytest.raises(TypeError, match="flip: expected true or false, got 1"):
        Augmentation(flip=1)  # pyright: ignore[reportArgumentType]


@steady
@given(augmentations)
def test_columns_of_the_draws_follow_each_other(augmentation: Augmentation):
    end = 0
    for columns in augmentation.columns.values():
        assert columns.start == end < columns.stop
        end = columns.stop
    assert augmentation.num_draws == end
    assert (end == 0) is (str(augmentation) == "none")
