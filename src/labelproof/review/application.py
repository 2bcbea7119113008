"""The web application of a review.

It needs the extra `review`; decisions and their export do not, and are in other files.
"""

from __future__ import annotations

import json
import mimetypes
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from labelproof.audit.folder import Audit
from labelproof.audit.samples import Samples
from labelproof.data.images import UnreadableImageError
from labelproof.data.notices import readable
from labelproof.ranges import whole
from labelproof.report.audit_words import export_name, remark
from labelproof.report.page import keep_direction, templates
from labelproof.review.decisions import Decisions, Review, export_csv

_SIDE, _ZOOMED = 1024, 4096
"""Pixels of a picture's longer side: for the page, a screen's height; and zoomed in."""

LARGEST = 1 << 20
"""Largest size of a request's body, in bytes."""


def make_application(audit: Audit, samples: Samples, decisions: Decisions, token: str) -> Starlette:
    """The review of an audit, for any ASGI server; its page is at `/TOKEN/`.

    Args:
        audit: The audit.
        samples: Renders its samples.
        decisions: Stores the decisions.
        token: The first part of every path; requests without it are refused.
    """
    # Some systems map .js to another type, and browsers run no script of that.
    mimetypes.add_type("text/javascript", ".js")
    pages = _Pages(audit, samples, decisions)
    routes = [
        Route("/", pages.page),
        *(Route(f"/{each.__name__}", _getting(each)) for each in pages.answers),
        Route("/sample/{place:int}", _getting(pages.sample)),
        Route("/picture/{place:int}", pages.picture),
        *(Route(f"/{each.__name__}", _posting(each), methods=["POST"]) for each in pages.changes),
        Route("/reviewed.csv", pages.export),
        Mount("/", StaticFiles(packages=[("labelproof.review", "static")])),
    ]
    invalid = (TypeError, ValueError, OverflowError)
    handlers: dict[Any, Callable[[Request, Exception], Response]] = {
        **dict.fromkeys(invalid, partial(_refuse, 400)),
        OSError: partial(_refuse, 503),
    }
    guard = Middleware(BaseHTTPMiddleware, dispatch=partial(_guard, token))
    within_token = [Mount(f"/{token}", routes=routes)]
    return Starlette(routes=within_token, exception_handlers=handlers, middleware=[guard])


def _getting(answer: Callable[[Request], Any]) -> Callable[[Request], Response]:
    return lambda request: JSONResponse(answer(request))


def _posting(answer: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        body = await _read_body(request)
        return JSONResponse(await run_in_threadpool(answer, body))

    return respond


class _Pages:
    """The handlers. All run in threads, so that a slow disk does not block the server."""

    def __init__(self, audit: Audit, samples: Samples, decisions: Decisions):
        self.audit = audit
        self.samples = samples
        self.review = Review(audit, decisions)
        self.answers = (self.start, self.queue, self.state)
        self.changes = (self.decide, self.accept, self.undo)

    def page(self, request: Request) -> Response:
        notes = (remark("caution", self.audit).removesuffix("."), self.review.stale_notice())
        notice = ". ".join(filter(None, notes))
        template = templates("labelproof.review").get_template("review.html")
        compared = self.audit.outlier is not None
        shown = template.render(name=readable(self.audit.name), notice=notice, compared=compared)
        return HTMLResponse(shown)

    def start(self, request: Request) -> dict[str, Any]:
        return {
            "kind": self.samples.kind,
            "classes": [keep_direction(readable(name)) for name in self.audit.class_names],
            "samples": len(self.audit.samples),
            **self._state(None),
        }

    def queue(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        scope = query.get("scope", "suspects")
        places = self.review.queue(
            scope=scope,
            shown=query.get("shown", "undecided"),
            order=query.get("order", "suspicious"),
            given=_number(query.get("given")),
            suggested=_number(query.get("suggested")),
        ).tolist()
        if text := query.get("text", "").strip().lower():
            places = [place for place in places if text in self._texts[place]]
        return {"places": places, "pairs": self.review.pairs(scope)}

    def state(self, request: Request) -> dict[str, Any]:
        return self._state(_number(request.query_params.get("since")))

    def sample(self, request: Request) -> dict[str, Any]:
        place = self._place(request)
        findings = self.audit.findings
        likeliest = findings.likeliest[place].tolist(), findings.probability[place].tolist()
        return {
            "place": place,
            "name": keep_direction(readable(self.audit.samples[place])),
            "given": int(findings.given[place]),
            "suggested": int(findings.suggested[place]),
            "score": round(float(findings.score[place]), 4),
            "trusted": findings.trusted,
            "likeliest": [*zip(*likeliest, strict=True)],
            "cells": self._cells(place),
            "remark": keep_direction(readable(self._remark(place))),
        }

    def picture(self, request: Request) -> Response:
        place = self._place(request)
        if self.samples.kind != "images":
            raise HTTPException(404, "These samples have no pictures.")
        try:
            side = _ZOOMED if "zoomed" in request.query_params else _SIDE
            content, kind = self.samples.picture(place, side=side)
        except UnreadableImageError as error:
            return PlainTextResponse(readable(str(error)), status_code=404)
        return Response(content, media_type=kind)

    def decide(self, body: dict[str, Any]) -> dict[str, Any]:
        place, choice = whole("place", body.get("place")), str(body.get("choice"))
        label = None if body.get("label") is None else whole("label", body["label"])
        return self._state(body.get("since"), partial(self.review.decide, place, choice, label))

    def accept(self, body: dict[str, Any]) -> dict[str, Any]:
        pair = [whole(name, body.get(name)) for name in ("given", "suggested")]
        return self._state(body.get("since"), partial(self.review.accept_all, *pair))

    def undo(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._state(body.get("since"), self.review.undo)

    def export(self, request: Request) -> Response:
        text = export_csv(self.audit, self.review.decisions)
        attached = {"content-disposition": f'attachment; filename="{export_name(self.audit)}"'}
        return Response(text, media_type="text/csv", headers=attached)

    def _place(self, request: Request) -> int:
        place = request.path_params["place"]
        if place >= len(self.audit.samples):
            raise HTTPException(404, "There is no such sample.")
        return place

    @cached_property
    def _texts(self) -> list[str]:
        """The searchable text of each sample: its name, its labels, and the cells of a row."""
        audit, findings = self.audit, self.audit.findings
        labels = zip(findings.given.tolist(), findings.suggested.tolist(), strict=True)
        texts = [
            "\n".join((name, *(audit.class_names[label] for label in pair))).lower()
            for name, pair in zip(audit.samples, labels, strict=True)
        ]
        if self.samples.kind == "rows":
            there = np.flatnonzero(self.samples.audit.index >= 0)
            rows = self.samples.table(there).astype(str).to_numpy().tolist()
            for place, cells in zip(there.tolist(), rows, strict=True):
                texts[place] += "\n" + "\n".join(cells).lower()
        return texts

    def _cells(self, place: int) -> list[tuple[str, str, bool, str, str]] | None:
        """A row's cells: column, value, whether it is unusual, and what is typical of both classes.

        `None` if the sample is not a row, or is gone.
        """
        if self.samples.kind != "rows" or self.samples.audit.index[place] < 0:
            return None
        findings, samples = self.audit.findings, self.samples
        cells, typical = samples.cells(place), samples.typical
        given, suggested = int(findings.given[place]), int(findings.suggested[place])
        unusual = typical.unusual(given, [cell for _, cell in cells])
        columns = zip(cells, typical.values(given), typical.values(suggested), strict=True)
        return [
            (readable(column), readable(cell), number in unusual, readable(own), readable(other))
            for number, ((column, cell), own, other) in enumerate(columns)
        ]

    def _remark(self, place: int) -> str:
        """What comparing the sample with all others has shown."""
        audit = self.audit
        if audit.duplicate_of is None or audit.outlier is None:
            return ""
        if (other := int(audit.duplicate_of[place])) >= 0:
            label = audit.class_names[audit.findings.given[other]]
            return f"nearly the same as {audit.samples[other]}, labelled {label}"
        return "like no other sample" if audit.outlier[place] else ""

    def _state(self, since: object, change: Callable[[], list[int]] = list) -> dict[str, Any]:
        """Make a change; a tab that showed another revision before gets all decisions."""
        review = self.review
        with review.decisions.lock:
            behind = since != review.revision
            places, decided = change(), review.decided
            # All may be many thousands, and a person who pressed a key waits for the answer.
            if not behind:
                decided = {place: decided.get(place) for place in places}
            return {
                "revision": review.revision,
                "counts": asdict(review.counts()),
                "places": places,
                "all": behind,
                "decided": [*decided.items()],
            }


async def _read_body(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise HTTPException(413, f"Expected at most {LARGEST} bytes.")
    values = None
    with suppress(ValueError, RecursionError):
        values = json.loads(body)
    if not isinstance(values, dict):
        raise TypeError("expected a JSON object with what is decided")
    return values


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _refuse(status: int, request: Request, error: Exception) -> Response:
    return PlainTextResponse(readable(str(error))[:1000], status)


_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    # Images too: they must not stay in the browser's cache once the token is invalid.
    "cache-control": "no-store",
}


async def _guard(
    token: str, request: Request, answer: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Answer only requests that name this server and start with its token.

    The host name is checked against DNS rebinding: a foreign page could let its own name resolve to
    this machine and share the review's origin. The token keeps out other pages, and other users of
    this machine unless they can see its command lines. It is in the path rather than a cookie,
    because browsers send cookies to all ports of a host.
    """
    refusal = _refusal(request, token)
    response = PlainTextResponse(refusal, 403) if refusal else await answer(request)
    response.headers.update(_HEADERS)
    return response


def _refusal(request: Request, token: str) -> str:
    """Why a request is refused; empty if it is not."""
    port = request.scope["server"][1]
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
    if request.headers.get("host", "").lower() not in hosts:
        return f"This review is at {' or '.join(hosts)}, and at no other name."
    first = "".join(request.scope["path"].split("/", 2)[1:2])
    if not secrets.compare_digest(first.encode(), token.encode()):
        return (
            "The address lacks this review's token: open the one that 'labelproof review' "
            "printed when it was started last."
        )
    origins = [f"http://{name}" for name in hosts]
    writes = request.method not in ("GET", "HEAD")
    if writes and request.headers.get("origin", "").lower() not in origins:
        return "Decisions are taken on the review's own page only."
    return ""
