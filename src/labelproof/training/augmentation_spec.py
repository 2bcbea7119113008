"""Augmentation as text: `crop:4,flip,rotation:20`, `resized-crop:224,flip`, `none`."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from labelproof.ranges import finite, flag, whole, within
from labelproof.training.geometry import ATTEMPTS

__all__ = ["Augmentation", "parse_augmentation"]

_WORDS = {
    "resized-crop": "resized-crop:SIDE",
    "crop": "crop:PIXELS",
    "flip": "flip",
    "rotation": "rotation:DEGREES",
    "jitter": "jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE",
}


@dataclass(frozen=True)
class Augmentation:
    """What is done to training images; prints as the text it can be read from.

    The steps are taken in the order resized crop, crop, flip, rotation, jitter.

    Attributes:
        crop: Pixels of black put around the image before a window of its size is cut out.
        flip: Whether left and right are exchanged for half of the images.
        rotation: Largest angle in degrees, either way; nearest neighbours, black corners.
        resized_crop: Side of the result, when a part of the image, 8% to all of it and at most 4:3
            wide or high, is resized to it; 0 for none.
        jitter: Largest change of brightness, contrast, saturation (as a share) and hue (as a part
            of the circle, at most half).

    Example:
        >>> str(Augmentation(crop=4, flip=True))
        'crop:4,flip'
    """

    crop: int = 0
    flip: bool = False
    rotation: float = 0.0
    resized_crop: int = 0
    jitter: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        strengths = self.jitter
        if not isinstance(strengths, tuple) or len(strengths) != 4:
            raise ValueError(
                "jitter: expected four numbers (brightness, contrast, saturation, hue), "
                f"got {strengths!r}"
            )
        hue = within("jitter's hue", strengths[3], 0, 0.5)
        checked = {
            "crop": whole("crop", self.crop, 0),
            "flip": flag("flip", self.flip),
            "rotation": within("rotation", self.rotation, 0, 180),
            "resized_crop": whole("resized_crop", self.resized_crop, 0),
            "jitter": (*(within("jitter", number, 0) for number in strengths[:3]), hue),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> dict[str, slice]:
        """Which columns of the draws belong to which step; a step that is off has none."""
        widths = {
            "resized_crop": (2 * ATTEMPTS + 2) * (self.resized_crop > 0),
            "crop": 2 * (self.crop > 0),
            "flip": 1 * self.flip,
            "rotation": 2 * (self.rotation > 0),
            "jitter": 4 * any(self.jitter),
        }
        found: dict[str, slice] = {}
        end = 0
        for name, width in widths.items():
            if width:
                found[name] = slice(end, end + width)
                end += width
        return found

    @property
    def num_draws(self) -> int:
        """Columns of the draws."""
        return sum(columns.stop - columns.start for columns in self.columns.values())

    def __str__(self) -> str:
        words = [
            f"resized-crop:{self.resized_crop}" * (self.resized_crop > 0),
            f"crop:{self.crop}" * (self.crop > 0),
            "flip" * self.flip,
            f"rotation:{_number(self.rotation)}" * (self.rotation > 0),
            ":".join(["jitter", *map(_number, self.jitter)]) * any(self.jitter),
        ]
        return ",".join(filter(None, words)) or "none"


def parse_augmentation(text: str) -> Augmentation:
    """Read `none`, or words such as `crop:4`, `flip` and `rotation:20` joined by commas.

    >>> parse_augmentation("crop:4,flip,rotation:20").rotation
    20.0
    >>> str(parse_augmentation("Flip, resized-crop:224, jitter:0.4:0.4:0.4:0.20"))
    'resized-crop:224,flip,jitter:0.4:0.4:0.4:0.2'
    >>> parse_augmentation("crop:4,flp")
    Traceback (most recent call last):
        ...
    ValueError: augmentation: expected none, or words of resized-crop:SIDE, crop:PIXELS, flip,
    rotation:DEGREES, jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE joined by commas (such as
    crop:4,flip); got 'flp' in 'crop:4,flp', did you mean 'flip'?
    """
    plain = text.strip().lower()
    if plain == "none":
        return Augmentation()
    given: dict[str, list[float]] = {}
    for part in plain.split(","):
        word, *values = (piece.strip() for piece in part.split(":"))
        if word not in _WORDS or len(values) != _WORDS[word].count(":"):
            raise _problem(text, part.strip(), word)
        if word in given:
            raise ValueError(f"augmentation: expected {word} once, got it again in {text!r}")
        try:
            given[word] = [finite(word, float(value)) for value in values]
        except ValueError:
            raise _problem(text, part.strip(), word) from None
    try:
        return Augmentation(
            crop=whole("crop", given.get("crop", [0])[0], 0),
            flip="flip" in given,
            rotation=given.get("rotation", [0.0])[0],
            resized_crop=whole("resized-crop", given.get("resized-crop", [0])[0], 0),
            jitter=tuple(given.get("jitter", [0.0] * 4)),  # pyright: ignore[reportArgumentType]
        )
    except ValueError as error:
        raise ValueError(f"augmentation: {error} in {text!r}") from None


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


def _problem(text: str, part: str, word: str) -> ValueError:
    close = [] if word in _WORDS else difflib.get_close_matches(word, _WORDS, n=1)
    return ValueError(
        f"augmentation: expected none, or words of {', '.join(_WORDS.values())} joined by commas "
        f"(such as crop:4,flip); got {part!r} in {text!r}"
        + (f", did you mean {close[0]!r}?" if close else "")
    )
