"""Pixels as pictures that lie inside a page."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.images import as_picture

__all__ = ["heat_picture", "picture"]

_LARGEST = 160
# Seen on white and on near-black.
_INK = (38, 139, 210)


def picture(image: NDArray[np.uint8]) -> str:
    """An image `(C, H, W)` as a data address; a photo is made smaller, a small image is exact.

    >>> picture(np.zeros((1, 8, 8), np.uint8))[:22]
    'data:image/png;base64,'
    """
    pixels = as_picture(image)
    if max(pixels.size) <= _LARGEST:
        return _address(pixels, "png")
    pixels.thumbnail((_LARGEST, _LARGEST))
    return _address(pixels, "jpeg")


def heat_picture(matrix: NDArray[np.float64]) -> str:
    """A matrix as a data address, a pixel for each entry; see-through where it is zero.

    The root of each entry is drawn, so that small ones are seen beside a large diagonal.
    """
    pixels = np.empty((*matrix.shape, 4), np.uint8)
    pixels[..., :3] = _INK
    pixels[..., 3] = np.rint(255 * np.sqrt(np.clip(matrix, 0, 1)))
    return _address(Image.fromarray(pixels), "png")


def _address(image: Image.Image, kind: str) -> str:
    stream = io.BytesIO()
    image.save(stream, kind, **({"quality": 85} if kind == "jpeg" else {"optimize": True}))
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
