"""Serve a review to the browser of this machine only."""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
import socket
from collections.abc import Callable
from typing import Any

from labelproof.audit.folder import Audit
from labelproof.audit.samples import Samples
from labelproof.review.decisions import Decisions

HOST = "127.0.0.1"

_PACKAGES = ("starlette", "uvicorn")


def check_installed() -> None:
    """Check that the packages of the extra `review` are installed.

    Raises:
        ImportError: They are not; the message says how to install them.
    """
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        needs = " and ".join(missing)
        raise ImportError(f"the review needs {needs}: pip install 'labelproof[review]'")


def serve(
    audit: Audit,
    samples: Samples,
    decisions: Decisions,
    *,
    port: int = 0,
    announce: Callable[[str], object] = print,
) -> None:
    """Serve a review until Ctrl-C.

    Only this machine can connect, and only with the address, which contains a fresh token.

    Args:
        audit: The audit.
        samples: Renders its samples.
        decisions: Stores the decisions.
        port: The port; 0 takes a free one.
        announce: Called with the address once it can be opened.

    Raises:
        ImportError: The packages of the extra `review` are not installed.
        OSError: The port is taken.
    """
    check_installed()
    token = secrets.token_urlsafe()
    server = make_server(audit, samples, decisions, token)
    with contextlib.closing(_listen(port)) as listener, contextlib.suppress(KeyboardInterrupt):
        announce(f"http://{HOST}:{listener.getsockname()[1]}/{token}/")
        server.run(sockets=[listener])


def make_server(audit: Audit, samples: Samples, decisions: Decisions, token: str) -> Any:
    """The server of a review, which answers only under `/TOKEN/`; see `serve`."""
    import uvicorn

    from labelproof.review.application import make_application

    return uvicorn.Server(
        uvicorn.Config(
            make_application(audit, samples, decisions, token),
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )


def _listen(port: int) -> socket.socket:
    """A socket that already accepts connections, so that the announced address can be opened."""
    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        raise OSError(f"port: {port} cannot be used ({error.strerror}); 0 is a free one") from error
    # A new object knows that it is TCP; otherwise asyncio delays each answer by 40 ms (Nagle).
    return socket.socket(fileno=listener.detach())
