"""The review as a web application: the page, the samples, and where decisions go.

It needs the extra `review`; what does not (decisions, their export) is in files of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from labelproof.audit.folder import Audit
from labelproof.audit.samples import Samples
from labelproof.data.images import UnreadableImageError
from labelproof.data.notices import readable
from labelproof.ranges import whole
from labelproof.report.audit_words import caution, export_name
from labelproof.report.page import templates
from labelproof.review.export import export_csv
from labelproof.review.guard import Guard
from labelproof.review.standing import Review
from labelproof.review.store import Decisions

__all__ = ["make_application"]

_SIDE = 1024
"""Pixels of a picture's longer side: a screen's height, and quick to make."""

_STATIC = {
    "review.js": "text/javascript",
    "server.js": "text/javascript",
    "shelf.js": "text/javascript",
    "card.js": "text/javascript",
    "chooser.js": "text/javascript",
    "filters.js": "text/javascript",
    "review.css": "text/css",
    "icon.svg": "image/svg+xml",
}


def make_application(audit: Audit, samples: Samples, decisions: Decisions, token: str) -> ASGIApp:
    """The review of an audit, for any ASGI server; its page is at `/TOKEN/`.

    Args:
        audit: What is reviewed.
        samples: How its samples look.
        decisions: Where decisions are kept.
        token: The first part of every path, without which nothing is answered.
    """
    pages = _Pages(audit, samples, decisions)
    routes = [
        Route("/", pages.page),
        Route("/start", pages.start),
        Route("/queue", pages.queue),
        Route("/state", pages.state),
        Route("/sample/{place:int}", pages.sample),
        Route("/picture/{place:int}", pages.picture),
        Route("/decide", pages.decide, methods=["POST"]),
        Route("/undo", pages.undo, methods=["POST"]),
        Route("/reviewed.csv", pages.export),
        Route("/{file}", _static),
    ]
    handlers: dict[Any, Callable[[Request, Exception], Response]] = {
        TypeError: _refused,
        ValueError: _refused,
        KeyError: _refused,
        OSError: _failed,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token)


class _Pages:
    """The answers. Those that are not `async` run in threads, so that no one waits for a disk."""

    def __init__(self, audit: Audit, samples: Samples, decisions: Decisions):
        self.audit = audit
        self.samples = samples
        self.review = Review(audit, decisions)

    def page(self, request: Request) -> Response:
        page = (
            templates("labelproof.review")
            .get_template("review.html")
            .render(name=readable(self.audit.name), notice=self._notice())
        )
        return HTMLResponse(page)

    def _notice(self) -> str:
        notes = (caution(self.audit).removesuffix("."), self.review.stale_notice())
        return ". ".join(note for note in notes if note)

    def start(self, request: Request) -> Response:
        return _json(
            {
                "kind": self.samples.kind,
                "classes": [readable(name) for name in self.audit.class_names],
                "samples": len(self.audit.samples),
                **self._state(0),
            }
        )

    def queue(self, request: Request) -> Response:
        asked = request.query_params
        scope = asked.get("scope", "suspects")
        places = self.review.queue(
            scope=scope,
            shown=asked.get("shown", "undecided"),
            order=asked.get("order", "suspicious"),
            given=_number(asked.get("given")),
            suggested=_number(asked.get("suggested")),
        )
        return _json({"places": places.tolist(), "pairs": self.review.pairs(scope)})

    def state(self, request: Request) -> Response:
        return _json(self._state(_number(request.query_params.get("since")) or 0))

    async def sample(self, request: Request) -> Response:
        # All of it is in memory: a thread would take longer to start than this to answer.
        place = self._place(request)
        findings = self.audit.findings
        return _json(
            {
                "place": place,
                "name": readable(self.audit.samples[place]),
                "given": int(findings.given[place]),
                "suggested": int(findings.suggested[place]),
                "score": round(float(findings.score[place]), 4),
                "cells": self._cells(place),
            }
        )

    def picture(self, request: Request) -> Response:
        place = self._place(request)
        if self.samples.kind != "images":
            raise HTTPException(404, "These samples have no pictures.")
        try:
            content, kind = self.samples.picture(place, side=_SIDE)
        except UnreadableImageError as error:
            return PlainTextResponse(readable(str(error)), status_code=404)
        return Response(content, media_type=kind)

    async def decide(self, request: Request) -> Response:
        asked = await _asked(request)
        label = asked.get("label")
        # All of it is read first: what is refused must not have been kept.
        since = whole("since", asked["since"])
        await run_in_threadpool(
            self.review.decide,
            whole("place", asked["place"]),
            str(asked["choice"]),
            None if label is None else whole("label", label),
        )
        return _json(await run_in_threadpool(self._state, since))

    async def undo(self, request: Request) -> Response:
        since = whole("since", (await _asked(request))["since"])
        place = await run_in_threadpool(self.review.undo)
        return _json({"place": place, **await run_in_threadpool(self._state, since)})

    def export(self, request: Request) -> Response:
        text = export_csv(self.audit, self.review.decisions)
        named = f'attachment; filename="{export_name(self.audit)}"'
        attached = {"content-disposition": named}
        return Response(text, media_type="text/csv", headers=attached)

    def _place(self, request: Request) -> int:
        place = request.path_params["place"]
        if place >= len(self.audit.samples):
            raise HTTPException(404, "There is no such sample.")
        return place

    def _cells(self, place: int) -> list[tuple[str, str]] | None:
        """A row's cells; none for what is not a row, or not there any more."""
        if self.samples.kind != "rows" or self.samples.audit.index[place] < 0:
            return None
        return [(readable(column), readable(cell)) for column, cell in self.samples.cells(place)]

    def _state(self, since: int) -> dict[str, Any]:
        """What has changed since a revision, so that all tabs come to show the same."""
        revision = self.review.refresh()
        changes = self.review.changes(since) if revision != since else {}
        return {
            "revision": revision,
            "counts": asdict(self.review.counts()),
            "changes": [[place, *(found or (None, None))] for place, found in changes.items()],
        }


def _static(request: Request) -> Response:
    file = request.path_params["file"]
    if file not in _STATIC:
        raise HTTPException(404, "There is no such file.")
    content = (resources.files("labelproof.review") / "static" / file).read_bytes()
    return Response(content, media_type=_STATIC[file])


def _json(values: object) -> Response:
    # Names of files may hold half characters, which UTF-8 cannot write and JSON's escapes can.
    return Response(json.dumps(values), media_type="application/json")


async def _asked(request: Request) -> dict[str, Any]:
    values = await request.json()
    if not isinstance(values, dict):
        raise TypeError(f"expected an object with what is decided, got {values!r}")
    return values


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _refused(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=400)


def _failed(request: Request, error: Exception) -> Response:
    return PlainTextResponse(readable(str(error)), status_code=503)
