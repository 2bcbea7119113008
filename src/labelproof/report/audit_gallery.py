"""The gallery of samples in the report of an audit."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from labelproof.audit.findings import Findings
from labelproof.audit.folder import Audit
from labelproof.audit.samples import Samples
from labelproof.data.images import UnreadableImageError, look_at_each
from labelproof.report.typical import Typical

ENOUGH = 200
"""Where there are fewer suspects, the next most suspicious samples fill the list up to so many."""
EACH_PAIR = 3
"""Suspects of each pair of classes that are seen before any more of another pair."""
SHOWN_COLUMNS = 100
SHOWN_CHARACTERS = 200
_FEW = 300
_SIDES = (320, 160)
"""Pixels of a photo's longer side, where there are few and where there are many."""

Look = str | tuple[Sequence[str], Sequence[int]] | None
"""An image as a data address, a row's cells and which are unusual, or `None` if it has vanished."""


@dataclass(frozen=True)
class Listed:
    """The samples of the gallery.

    Attributes:
        places: Which of the audit's samples, the most suspicious first.
        suspects: How many of them are suspects; the others follow.
        all_suspects: How many suspects there are in all.
    """

    places: NDArray[np.int64]
    suspects: int
    all_suspects: int

    @property
    def below(self) -> int:
        """How many are listed that are not suspects."""
        return len(self.places) - self.suspects


def list_samples(audit: Audit, *, limit_bytes: int) -> Listed:
    """All suspects that fit, and if there are few, the next samples too.

    `limit_bytes` is for their names and numbers.
    """
    findings = audit.findings
    suspects = len(findings.suspects)
    places = findings.order[: max(suspects, ENOUGH)]
    numbers = 5 * (len(str(findings.num_classes)) + 1) + 30
    sizes = [len(as_json(audit.samples[place]).encode()) + numbers for place in places.tolist()]
    places = places[: int(np.searchsorted(np.cumsum(sizes), limit_bytes, side="right"))]
    return Listed(places, min(suspects, len(places)), suspects)


def seen_first(findings: Findings, listed: Listed) -> list[int]:
    """The order in which samples are made visible until the room is spent, as places in the list.

    The highest scores come first, but before all others some of each pair of classes.
    """
    met: dict[tuple[int, int], int] = {}
    early: list[int] = []
    late: list[int] = []
    for number, place in enumerate(listed.places.tolist()):
        pair = (int(findings.given[place]), int(findings.suggested[place]))
        met[pair] = met.get(pair, 0) + 1
        suspect = number < listed.suspects
        (early if suspect and met[pair] <= EACH_PAIR else late).append(number)
    return early + late


def look_at(
    samples: Samples, listed: Listed, *, limit_bytes: int, typical: Typical | None = None
) -> dict[int, Look]:
    """Render as many of the listed samples as fit into the page, by their place in the list."""
    order = seen_first(samples.audit.findings, listed)
    if samples.kind == "images":
        side = _SIDES[len(order) > _FEW]
        looks = look_at_each(listed.places[order].tolist(), partial(_image, samples, side=side))
    elif samples.kind == "rows":
        looks = (_row(samples, typical, place) for place in listed.places[order].tolist())
    else:
        return {}
    kept: dict[int, Look] = {}
    left = limit_bytes
    for number, look in zip(order, looks, strict=False):
        left -= len(as_json({str(number): look}).encode())
        if left < 0:
            break
        kept[number] = look
    return dict(sorted(kept.items()))


def column_names(samples: Samples, listed: Listed) -> list[str]:
    """The columns of rows, as many as are shown; none for images."""
    if samples.kind != "rows":
        return []
    there = (place for place in listed.places.tolist() if samples.audit.index[place] >= 0)
    first = next(there, None)
    cells = [] if first is None else samples.cells(first)
    return [_shortened(column) for column, _ in cells[:SHOWN_COLUMNS]]


def as_json(value: object) -> Markup:
    r"""JSON that is safe inside a script element: nothing in it closes the element.

    Example:
        >>> print(as_json(["</script>", "a & b"]))
        ["\u003c/script\u003e","a \u0026 b"]
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Line ends that scripts once took for their own, and half characters that no file can hold.
    escaped = re.sub(
        "[<>&\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text
    )
    return Markup(escaped)  # noqa: S704


def _image(samples: Samples, place: int, *, side: int) -> Look:
    try:
        content, media_type = samples.picture(place, side=side)
    except UnreadableImageError:
        return None
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


def _row(samples: Samples, typical: Typical | None, place: int) -> Look:
    if samples.audit.index[place] < 0:
        return None
    cells = [value for _, value in samples.cells(place)[:SHOWN_COLUMNS]]
    given = int(samples.audit.findings.given[place])
    unusual = typical.unusual(given, cells) if typical else []
    return [_shortened(cell) for cell in cells], unusual


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
