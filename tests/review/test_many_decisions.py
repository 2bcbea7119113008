"""Many decisions through the keyboard, with the server killed in the middle of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from audits import make_audit, make_findings
from browser import chromium, open_page  # noqa: F401
from review.served import Program, served

from labelproof.audit.folder import Audit
from labelproof.review.decisions import plain_choice

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("uvicorn", reason="needs the extra review")

MANY = 60
# Little to paint: it is the decisions that are tested.
SMALL: dict[str, Any] = {"viewport": {"width": 480, "height": 360}}

# Resolves once a sample is on the screen: one question to the browser for each decision.
SEEN = """place => new Promise((resolve) => {
  const stage = document.getElementById("stage");
  const look = () => stage.dataset.place === place && (watch.disconnect(), resolve());
  const watch = new MutationObserver(look);
  watch.observe(stage, { attributes: true });
  look();
})"""


def made_audit(folder: Path) -> Audit:
    """Of the digits that come with the package: nothing to decode, and pictures all the same."""
    findings, _ = make_findings(100, 10, wrong=0.8)
    # The labels are not those of the digits, and must not be taken for changed ones.
    noise = {"noise": "symmetric:0.8"}
    audit = make_audit(findings, "0123456789", data="digits", kind="images", method=noise)
    audit.write(folder)
    return audit


def expected(audit: Audit, place: int, key: str) -> tuple[str, str | None]:
    findings, names = audit.findings, audit.class_names
    # Classes that are digits have themselves as keys.
    choice = {"u": "unsure", "k": "keep", "a": "accept"}.get(key, "another")
    given, suggested = names[findings.given[place]], names[findings.suggested[place]]
    return plain_choice(choice, given=given, suggested=suggested, label=key)


def decide_all(page: Page, places: list[int], keys: list[str]) -> None:
    """Press a key for each sample once it is seen; the last one is followed by the end."""
    for place, key in zip(places, keys, strict=True):
        page.evaluate(SEEN, str(place))
        page.keyboard.press(key)


@pytest.mark.slow
def test_a_kill_loses_nothing_and_doubles_nothing(browser: Browser, tmp_path: Path) -> None:
    audit = made_audit(tmp_path / "audit")
    *places, after = audit.findings.suspects[: MANY + 1].tolist()
    keys = np.random.default_rng(1).choice(["k", "a", "u", "3", "9"], MANY).tolist()
    half = MANY // 2

    # The page is to notice that its server is gone, which Chromium writes into its console.
    with (
        Program(tmp_path / "audit") as program,
        open_page(browser, errors=False, **SMALL) as page,
    ):
        page.goto(program.address())
        decide_all(page, places[:half], keys[:half])
        page.evaluate(SEEN, str(places[half]))
        # Killed with a decision on its way, which may be kept or not.
        page.keyboard.press(keys[half])
        program.kill()
        page.keyboard.press("u")
        problem = page.get_by_role("alert")
        problem.wait_for(state="visible")
        assert "cannot be reached" in problem.inner_text()

    with served(audit, tmp_path / "audit") as review, open_page(browser, **SMALL) as page:
        kept = len(review.decisions.history())
        assert kept in (half, half + 1)
        page.goto(review.address)
        decide_all(page, places[kept:], keys[kept:])
        page.evaluate(SEEN, str(after))
        history, latest = review.decisions.history(), review.decisions.latest()
    assert len(history) == len(latest) == MANY
    for one, place, key in zip(history, places, keys, strict=True):
        assert one.sample == audit.samples[place]
        assert (one.choice, one.label) == expected(audit, place, key)
