"""How much of 16-bit images is left when they are brought to 8 bits."""

from __future__ import annotations

import numpy as np
from PIL import Image

__all__ = ["GreyLevels"]

_FEW = 64
"""Levels of 256 below which images are said to have lost something. 14 bits of 16 have as many."""

_OUTSIDE = 0.0005
"""The share of pixels at either end that is left out: a few hot ones are in most such images."""


class GreyLevels:
    """A count of the values in 16-bit images, over all that are looked at.

    Detectors of 12 bits, and counts of few photons, are stored as 16 bits with most of the values
    unused. Divided by 256, such images are almost black, or of a handful of greys.

    Example:
        >>> levels = GreyLevels()
        >>> levels.count("cell.png", Image.fromarray(np.arange(4096, dtype=np.uint16)[None]))
        >>> levels.warning.split(":")[0]
        '16-bit images with 16 of the 256 grey levels that are kept, such as cell.png'
    """

    def __init__(self) -> None:
        self.images = 0
        self.first = ""
        self.values = np.zeros(65536, np.int64)
        self.cut = False

    def count(self, name: str, image: Image.Image) -> None:
        """Count an image's values if it has 16 bits, and name it if it is the first.

        Args:
            name: What to call it.
            image: Opened, and not loaded yet.
        """
        # Pillow opens 16-bit colours as 8-bit ones; only before loading they tell.
        cut = any(";16" in str(tile) for tile in getattr(image, "tile", ()))
        deep = image.mode.startswith("I")
        if not (deep or cut):
            return
        values = np.asarray(image).ravel()
        if not deep:
            self.cut = True
            values = values.astype(np.int64) << 8
        elif values.min() < 0 or values.max() > 65535:
            return  # refused where it is decoded, with a reason
        self.first = self.first or name
        self.images += 1
        self.values += np.bincount(values, minlength=65536)

    @property
    def warning(self) -> str | None:
        """What is lost and what to do, or `None` where little is."""
        if not self.images:
            return None
        shares = np.cumsum(self.values) / self.values.sum()
        low = int(np.searchsorted(shares, _OUTSIDE, side="right"))
        high = int(np.searchsorted(shares, 1 - _OUTSIDE))
        kept = (high >> 8) - (low >> 8) + 1
        within = np.flatnonzero(self.values[low : high + 1]) + low
        # Masks of two values that stay two have lost nothing.
        if kept >= _FEW or (not self.cut and len(np.unique(within >> 8)) == len(within)):
            return None
        return (
            f"16-bit images with {kept} of the 256 grey levels that are kept, such as "
            f"{self.first}: values are divided by 256, and nearly all of these go from {low:,} to "
            f"{high | 255 if self.cut else high:,}; save them as 8 bit, all brought there from one "
            "range, and new ones to predict from the same"
        )
