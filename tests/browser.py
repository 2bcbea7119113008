"""A real browser for the tests of pages; where there is none, they are skipped.

A test file imports `chromium` (`# noqa: F401`) and asks for the fixture by the name `browser`.
`open_page` fails the test where the page had an error: in its script, in its console, or a request
that a policy refused.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["LEFTS", "chromium", "open_page"]

LEFTS = """element => [...element.textContent].map((_, place) => {
  const letter = document.createRange();
  letter.setStart(element.firstChild, place);
  letter.setEnd(element.firstChild, place + 1);
  return letter.getBoundingClientRect().left;
})"""
"""Where each letter of an element's text is, from the left."""


# Of a module and not of the session: while it runs there is an event loop in this thread, and tests
# that start one of their own would be refused.
@pytest.fixture(name="browser", scope="module")
def chromium() -> Iterator[Browser]:
    """A Chromium, for one test file."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as engine:
        plain = ["--no-sandbox", "--disable-gpu"]
        running = engine.chromium.launch(executable_path=program, args=plain, timeout=180_000)
        yield running
        running.close()


@contextlib.contextmanager
def open_page(
    browser: Browser, file: Path | None = None, *, errors: bool = True, **options: Any
) -> Iterator[Page]:
    """A file, or an empty page, in a profile of its own; options are those of `new_context`."""
    context = browser.new_context(**options)
    context.set_default_timeout(120_000)  # a busy machine takes its time
    try:
        page = context.new_page()
        met: list[str] = []
        page.on("pageerror", lambda error: met.append(f"not caught: {error}"))
        page.on(
            "console", lambda message: met.append(message.text) if message.type == "error" else None
        )
        if file is not None:
            page.goto(file.as_uri())
        yield page
        assert not (errors and met), f"the page had errors: {met}"
    finally:
        context.close()
