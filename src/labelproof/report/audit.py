"""The report of an audit: how many labels are wrong, which ones, and the method."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from numpy.typing import NDArray

from labelproof.audit.findings import Findings
from labelproof.audit.folder import SUSPECTS, Audit
from labelproof.audit.samples import Samples
from labelproof.data.images import UnreadableImageError, look_at_each
from labelproof.data.notices import readable
from labelproof.report import audit_words as words
from labelproof.report.page import heat_picture, render_page, write_page

NUMBERED_CLASSES = 20
"""Classes up to which a matrix is shown with a number in each cell."""
INTERVAL_CLASSES = 10
"""Classes up to which its cells show intervals too."""
CLUSTERED_CLASSES = 30
"""Classes up to which a matrix is not ordered by clusters."""
DRAWN_CLASSES = 100
"""Most classes of a matrix that is drawn: those with the most suspects."""
_SCRIPTS = ("audit_samples.js", "audit_cards.js", "audit.js")
_LISTED = 20
"""Most near duplicates, and most outliers, that the page lists."""
_THUMB = 64
"""Pixels of the longer side of their pictures."""

ENOUGH = 200
"""Fewest samples that the page lists: the next most suspicious ones follow the suspects."""
MOST = 30_000
"""Most suspects that the page lists; the file of suspects has all."""
EACH_PAIR = 3
"""Suspects of each pair of classes that are shown before the rest."""
SHOWN_COLUMNS = 100
SHOWN_CHARACTERS = 200
_FEW = 300
_SIDES = (320, 160)
"""Pixels of a photo's longer side, for up to `_FEW` samples and for more."""

Look = str | tuple[Sequence[str], Sequence[int]] | None
"""An image as a data URL, a row's cells and which are unusual, or `None` if it has vanished."""


def write_audit_page(
    path: Path, audit: Audit, samples: Samples, *, limit_bytes: int = 8_000_000
) -> Path:
    """Write the report of an audit: findings, tables and suspects.

    Args:
        path: The file; the page is self-contained.
        audit: The audit.
        samples: Its samples; see `open_samples`.
        limit_bytes: Size limit of the pictures. Further suspects are listed by name alone.

    Example:
        >>> from labelproof.audit import Estimate
        >>> findings = Findings(
        ...     given=np.array([0, 0, 1, 1]), suggested=np.array([0, 0, 1, 0]),
        ...     score=np.array([0, 0, 0.2, 0.9]), noise_rate=Estimate(0.25, 0.1, 0.6),
        ...     transition=np.eye(2), transition_low=np.eye(2), transition_high=np.eye(2),
        ...     temperature=1.0, likeliest=np.array([[0], [0], [1], [0]]),
        ...     probability=np.ones((4, 1)))
        >>> audit = Audit("pets", "pets", "unknown", ("cat", "dog"), ["a", "b", "c", "d"],
        ...     np.arange(4), findings)
        >>> path = getfixture("tmp_path") / "report.html"
        >>> page = write_audit_page(path, audit, Samples(audit, None))
        >>> "About 1 of 4 labels is wrong: 25.0%" in page.read_text()
        True
    """
    listed = list_samples(audit)
    looks = look_at(samples, listed, limit_bytes=limit_bytes)
    vanished = {number for number, look in looks.items() if look is None}
    return write_page(
        path,
        "audit.html",
        looks=as_json(looks),
        seen=sum(number < listed.suspects for number in looks.keys() - vanished),
        vanished=len(vanished),
        **_finding(path, audit),
        **_matrices(audit),
        **_alike(audit, samples),
        **_gallery(audit, samples, listed),
    )


def _finding(path: Path, audit: Audit) -> dict[str, object]:
    script = Markup("\n".join(render_page(part) for part in _SCRIPTS))  # noqa: S704
    digest = hashlib.sha256(script.encode()).digest()
    caution = words.remark("caution", audit)
    summary = words.finding(audit.findings, seen=audit.seen)
    return {
        "audit": audit,
        "readable": readable,
        "remark": words.remark,
        "title": f"{readable(audit.name)}: which labels are wrong",
        # A caution comes first: if little was learned, the figures below are unreliable.
        "finding": caution or summary,
        "doubtful": summary if caution else "",
        "commands": words.commands(audit, path.parent),
        "script": script,
        "script_hash": f"sha256-{base64.b64encode(digest).decode('ascii')}",
        "suspects_file": SUSPECTS,
    }


def _alike(audit: Audit, samples: Samples) -> dict[str, object]:
    """Near duplicates, those with different labels first, and outliers: picture, name and label."""
    if audit.duplicate_of is None or audit.outlier is None:
        return {"duplicates": [], "outliers": [], "alike": (0, 0)}
    names, given, others = audit.samples, audit.findings.given, audit.duplicate_of
    pairs = {(min(a, b), max(a, b)) for a, b in enumerate(others.tolist()) if b >= 0}
    ordered = sorted(pairs, key=lambda pair: (given[pair[0]] == given[pair[1]], pair))
    outliers: list[int] = np.flatnonzero(audit.outlier).tolist()

    def listed(place: int) -> tuple[Look, str, int]:
        picture = _image(samples, place, side=_THUMB) if samples.kind == "images" else None
        return picture, names[place], given[place]

    return {
        "duplicates": [[*map(listed, pair)] for pair in ordered[:_LISTED]],
        "outliers": [*map(listed, outliers[:_LISTED])],
        "alike": (len(pairs), len(outliers)),
    }


def _matrices(audit: Audit) -> dict[str, object]:
    findings = audit.findings
    counts = words.confusion_counts(findings)
    off = counts * ~np.eye(len(counts), dtype=bool)
    largest = max(int(off.max()), 1)
    names = [readable(name) for name in audit.class_names]
    longest = max(len(name) for name in names)
    pairs = words.confusions(findings, counts)
    order = [] if len(names) <= NUMBERED_CLASSES else _order(findings, off)
    within = np.ix_(order, order)
    drawn = {"confusion": off[within] / largest, "noise": findings.transition[within]}
    return {
        "names": names,
        "short_names": longest <= 3,
        # As wide as the longest name, within limits; hovering shows the whole name.
        "head_width": round(min(1.2 + 0.55 * longest, 9), 2),
        "pairs": pairs,
        "confused_most": words.confused_most(pairs, names),
        "counts": counts,
        "largest": largest,
        "share": partial(words.share, findings),
        "intervals": len(names) <= INTERVAL_CLASSES,
        "order": order,
        "clustered": len(names) > CLUSTERED_CLASSES,
        "pictures": {key: heat_picture(matrix) for key, matrix in drawn.items()} if order else {},
        "matrices": as_json(
            {
                "order": order,
                "confusion": counts[within].tolist(),
                "noise": findings.transition[within].round(4).tolist(),
            }
        ),
        "any_suspects": bool(off.any()),
    }


def _order(findings: Findings, off: NDArray[np.int64]) -> list[int]:
    """The classes of a large matrix, ordered so that confused ones are neighbours."""
    most = np.argsort(-(off.sum(axis=0) + off.sum(axis=1)), kind="stable")[:DRAWN_CLASSES]
    order = np.sort(most)
    if findings.num_classes > CLUSTERED_CLASSES:
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        shares = findings.transition[np.ix_(order, order)]
        # From 0 to 1; the root, so that rare confusions matter too.
        distances = 1 - np.sqrt(np.clip((shares + shares.T) / 2, 0, 1))
        np.fill_diagonal(distances, 0)
        tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
        order = order[leaves_list(tree)]
    return order.tolist()


@dataclass(frozen=True)
class Listed:
    """The samples of the gallery.

    Attributes:
        places: Their positions among the audit's samples, the most suspicious first.
        suspects: Number of suspects among them; the others follow.
    """

    places: NDArray[np.int64]
    suspects: int


def list_samples(audit: Audit) -> Listed:
    """The suspects and, if there are few, the next most suspicious samples."""
    suspects = min(len(audit.findings.suspects), MOST)
    return Listed(audit.findings.order[: max(suspects, ENOUGH)], suspects)


def seen_first(findings: Findings, listed: Listed) -> list[int]:
    """The order in which listed samples are rendered until the page is full, as indices.

    The highest scores come first, but some of each pair of classes before all others.
    """
    pairs = (findings.given * findings.num_classes + findings.suggested)[listed.places]
    late = pd.Series(pairs).groupby(pairs).cumcount().to_numpy() >= EACH_PAIR
    late[listed.suspects :] = True
    return np.argsort(late, kind="stable").tolist()


def look_at(samples: Samples, listed: Listed, *, limit_bytes: int) -> dict[int, Look]:
    """Render as many of the listed samples as fit into the page, by their index in the list."""
    order = seen_first(samples.audit.findings, listed)
    if samples.kind == "images":
        side = _SIDES[len(order) > _FEW]
        looks = look_at_each(listed.places[order].tolist(), partial(_image, samples, side=side))
    elif samples.kind == "rows":
        looks = (_row(samples, place) for place in listed.places[order].tolist())
    else:
        return {}
    kept: dict[int, Look] = {}
    remaining = limit_bytes
    for number, look in zip(order, looks, strict=False):
        remaining -= len(as_json({str(number): look}).encode())
        if remaining < 0:
            break
        kept[number] = look
    return dict(sorted(kept.items()))


def as_json(value: object) -> Markup:
    r"""JSON that is safe inside a script element: nothing in it closes the element.

    It is ASCII: a name that is not UTF-8 has surrogates, with which no page could be written.

    Example:
        >>> print(as_json(["</script>", "a & b"]))
        ["\u003c/script\u003e","a \u0026 b"]
    """
    return htmlsafe_json_dumps(value, separators=(",", ":"), allow_nan=False)


def _image(samples: Samples, place: int, *, side: int) -> Look:
    try:
        return samples.picture_url(place, side=side)
    except UnreadableImageError:
        return None


def _row(samples: Samples, place: int) -> Look:
    if samples.audit.index[place] < 0:
        return None
    cells = [value for _, value in samples.cells(place)[:SHOWN_COLUMNS]]
    given = int(samples.audit.findings.given[place])
    return [_shortened(cell) for cell in cells], samples.typical.unusual(given, cells)


def _shortened(text: str) -> str:
    """Text that fits on a card.

    >>> _shortened("-2.986761210792829"), _shortened("20241231.5"), _shortened("0012345678")
    ('-2.98676', '20241231.5', '0012345678')
    """
    with suppress(ValueError):
        if "." in text and len(text) > 9 and abs(number := float(text)) < 1e5:
            text = f"{number:.6g}"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def _gallery(audit: Audit, samples: Samples, listed: Listed) -> dict[str, object]:
    findings, places = audit.findings, listed.places
    present = [place for place in places.tolist() if samples.audit.index[place] >= 0]
    cells = samples.cells(present[0]) if present and samples.kind == "rows" else []
    columns = [_shortened(column) for column, _ in cells[:SHOWN_COLUMNS]]
    classes = range(findings.num_classes) if samples.kind == "rows" else ()
    data = {
        "kind": samples.kind,
        "classes": list(audit.class_names),
        "suspects": listed.suspects,
        "names": [audit.samples[place] for place in places.tolist()],
        "given": findings.given[places].tolist(),
        "suggested": findings.suggested[places].tolist(),
        "votes": [] if audit.votes is None else [audit.count_votes(n) for n in places.tolist()],
        "score": [round(score, 4) for score in findings.score[places].tolist()],
        "likeliest": findings.likeliest[places].tolist(),
        "probability": [
            [round(p, 3) for p in row] for row in findings.probability[places].tolist()
        ],
        "trusted": findings.trusted,
        "columns": columns,
        "typical": [samples.typical.values(label)[: len(columns)] for label in classes],
    }
    return {"data": as_json(data), "listed": listed, "kind": samples.kind}
