"""Who is let in: this machine's browser, at the address that only its user was told."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard"]

_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    # Of images too: they must not be in the browser's cache once the token is void.
    (b"cache-control", b"no-store"),
)


class Guard:
    """Lets requests through to an application that name this server and begin with its token.

    The name of the host is checked because a foreign page can have its own name resolve to this
    machine, and would then be of one origin with the review. The token keeps out other users of
    this machine, as far as they cannot see how its programs were started, and every page that is
    not told the address. It is part of the path, and not a cookie, since browsers send a cookie to
    all ports of a host.

    Args:
        application: What is guarded.
        token: The first part of every path.
    """

    def __init__(self, application: ASGIApp, token: str):
        self._application = application
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal:
            await _answer(send_guarded, 403, refusal)
            return
        inside = {**scope, "root_path": f"{scope.get('root_path', '')}/{self._token}"}
        await self._application(inside, receive, send_guarded)

    def _refusal(self, scope: Scope) -> str:
        """Why a request is not answered; nothing where it is."""
        hosts = _hosts(scope["server"][1])
        host = _header(scope["headers"], b"host").lower()
        if host not in hosts:
            return f"This review is at {' or '.join(hosts)}, and at no other name."
        first = scope["path"].split("/", 2)[1:2]
        if not secrets.compare_digest("".join(first).encode(), self._token.encode()):
            return (
                "The address lacks this review's token: open the one that 'labelproof review' "
                "printed when it was started last."
            )
        origins = [f"http://{name}" for name in hosts]
        writes = scope["method"] not in ("GET", "HEAD")
        if writes and _header(scope["headers"], b"origin").lower() not in origins:
            return "Decisions are taken on the review's own page only."
        return ""


def _hosts(port: int) -> list[str]:
    names = ["127.0.0.1", "localhost"]
    return [f"{name}:{port}" for name in names] + names * (port == 80)


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in headers if key == name), "")


async def _answer(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
