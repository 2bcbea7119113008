"""Self-contained pages from templates, with everything escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from labelproof.data.images import as_picture, data_url, encode_picture
from labelproof.training.files import write_text


def write_page(path: Path, template: str, **values: object) -> Path:
    """Render a template of this package and write it atomically; the page is self-contained."""
    write_text(path, render_page(template, **values))
    return path


def render_page(template: str, **values: object) -> str:
    """Render a template of this package; see `write_page`."""
    return templates("labelproof.report").get_template(template).render(**values)


def render_words(template: str, **values: object) -> str:
    """Render a template of plain text into one line, its white space collapsed."""
    return " ".join(render_page(template, **values).split())


@cache
def templates(package: str) -> jinja2.Environment:
    """The templates of a package, which escape all values and refuse undefined ones."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=keep_direction,
    )


_BIDI_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def keep_direction(value: Any) -> Any:
    """A text without characters that reverse the text after them; other values unchanged.

    >>> keep_direction("cat\u202e")
    'cat'
    """
    return value.translate(_BIDI_CONTROLS) if type(value) is str else value


_LARGEST = 160
# Visible on white and on near-black.
_INK = (38, 139, 210)


def picture(image: NDArray[np.uint8]) -> str:
    """An image `(C, H, W)` as a data URL; a photo is scaled down, a small image is exact.

    >>> picture(np.zeros((1, 8, 8), np.uint8))[:22]
    'data:image/png;base64,'
    """
    pixels = as_picture(image)
    pixels.thumbnail((_LARGEST, _LARGEST))
    return data_url(*encode_picture(pixels))


def heat_picture(matrix: NDArray[np.float64]) -> str:
    """A matrix as a data URL, one pixel per entry; zeros are transparent.

    The root of each entry is drawn, so that small ones are visible beside a large diagonal.
    """
    pixels = np.empty((*matrix.shape, 4), np.uint8)
    pixels[..., :3] = _INK
    pixels[..., 3] = np.rint(255 * np.sqrt(np.clip(matrix, 0, 1)))
    return data_url(*encode_picture(Image.fromarray(pixels), "png"))


DATASETS = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "webvision": "mini WebVision",
}
"""The display names of datasets."""

TABLES = {
    "symmetric": "symmetric noise",
    "asymmetric": "asymmetric noise",
    "comparison": "other methods",
    "imbalance": "imbalanced classes",
    "webvision": "web labels",
    "beyond": "beyond the paper",
    "human": "human labels",
    "sweep-lambda": "the penalty's weight λ",
    "sweep-tau": "the temperature τ",
    "sweep-p": "the exponent p",
}
"""The display names of tables."""
