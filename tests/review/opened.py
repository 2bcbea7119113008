"""A review that is served, and open in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from browser import open_page
from review.served import Served, served

from labelproof.audit.folder import Audit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect
expect.set_options(timeout=60_000)  # a busy machine takes its time


@dataclass
class Opened:
    page: Page
    review: Served
    audit: Audit

    @property
    def suspects(self) -> list[int]:
        return self.audit.findings.suspects.tolist()

    def at(self, place: int | str) -> None:
        """Wait until a sample is on the screen."""
        expect(self.page.locator(f'#stage[data-place="{place}"]')).to_be_visible()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def kept(self) -> dict[str, tuple[str, str | None]]:
        latest = self.review.decisions.latest()
        return {sample: decision for (sample, _), decision in latest.items()}

    def name(self, label: np.int64 | int) -> str:
        return self.audit.class_names[label]


@contextmanager
def opened(browser: Browser, audit: Audit, folder: Path, **options: Any) -> Iterator[Opened]:
    with served(audit, folder / "audit") as review, open_page(browser, **options) as page:
        page.goto(review.address)
        yield Opened(page, review, audit)
