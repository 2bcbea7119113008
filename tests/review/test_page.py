"""Reviewing in a real browser, against a real server."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from audits import COLOURS, make_photos
from browser import chromium, open_page  # noqa: F401
from review.opened import Opened, expect, opened
from review.served import Program, history

from labelproof.audit.folder import Audit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return make_photos(tmp_path_factory.mktemp("photos"), samples=150, names=COLOURS[:4])


@pytest.fixture
def it(browser: Browser, photos: Audit, tmp_path: Path) -> Iterator[Opened]:
    with opened(browser, photos, tmp_path) as review:
        yield review


def alike(it: Opened, given: int, suggested: int) -> list[int]:
    """The suspects of one confusion."""
    pairs = zip(it.audit.findings.given, it.audit.findings.suggested, strict=True)
    of_pair = {place for place, pair in enumerate(pairs) if pair == (given, suggested)}
    return [place for place in it.suspects if place in of_pair]


def test_each_decision_has_a_key(it: Opened, photos: Audit) -> None:
    findings, samples = photos.findings, photos.samples
    first, second, third, fourth, fifth, *_ = it.suspects
    it.at(first)
    assert it.text("#given") == it.name(findings.given[first])
    assert it.text("#suggested") == it.name(findings.suggested[first])
    it.press("k")
    it.at(second)
    it.press("A")  # with the shift key, or caps lock
    it.at(third)
    it.press("u")
    it.at(fourth)
    likeliest = findings.likeliest[fourth].tolist()
    other = ({*likeliest} - {findings.given[fourth], findings.suggested[fourth]}).pop()
    # The keys 1 to 3 are those of the likeliest classes.
    expect(it.page.locator("#classes button").first).to_contain_text("70%")
    it.press(str(likeliest.index(other) + 1))
    it.at(fifth)
    assert it.kept() == {
        samples[first]: ("keep", it.name(findings.given[first])),
        samples[second]: ("accept", it.name(findings.suggested[second])),
        samples[third]: ("unsure", None),
        samples[fourth]: ("another", it.name(other)),
    }
    assert it.text("#counts") == f"4 of {len(it.suspects)} suspects, 2 changed, 1 unsure"
    spoken = it.page.locator("#spoken")
    expect(spoken).to_contain_text(f"Changed to {it.name(other)}. Sample 5 of")
    expect(spoken).to_contain_text(samples[fifth])


def test_each_decision_has_a_button(browser: Browser, photos: Audit, tmp_path: Path) -> None:
    with opened(browser, photos, tmp_path, has_touch=True) as it:
        order = it.suspects
        for place, button in enumerate(("keep", "accept", "unsure")):
            it.at(order[place])
            it.page.locator(f"#{button}").tap()
        it.at(order[3])
        it.page.locator("#another").tap()
        it.page.locator("#found li").nth(1).tap()
        it.at(order[4])
        it.page.get_by_role("group", name="Give one of").get_by_role("button").nth(2).tap()
        it.at(order[5])
        for button, place in (("next", 6), ("previous", 5), ("undo", 4)):
            it.page.locator(f"#{button}").tap()
            it.at(order[place])
        assert len(it.kept()) == 4
        it.page.locator("#help").tap()
        it.page.get_by_role("button", name="Close").tap()
        expect(it.page.locator("#keys")).to_be_hidden()


def test_arrows_decide_nothing_and_a_key_or_button_held_down_decides_once(it: Opened) -> None:
    order = it.suspects
    it.at(order[0])
    it.press("ArrowLeft")
    it.press("ArrowRight", "ArrowRight", "ArrowRight")
    it.at(order[3])
    it.press("ArrowLeft")
    it.at(order[2])
    assert it.kept() == {}
    for _ in range(3):
        it.page.keyboard.down("k")
    it.page.keyboard.up("k")
    it.at(order[3])
    assert len(it.kept()) == 1
    for button, place, kept in (("#keep", 4, 2), ("#classes button", 5, 3), ("#undo", 4, 2)):
        it.page.locator(button).first.focus()
        for _ in range(4):
            it.page.keyboard.down("Enter")
            it.page.wait_for_timeout(100)
        it.page.keyboard.up("Enter")
        it.at(order[place])
        assert sum(not undone for *_, undone in history(it.review.decisions.path)) == kept


def test_undo_goes_back_level_by_level(it: Opened, photos: Audit) -> None:
    order = it.suspects
    for place in range(3):
        it.at(order[place])
        it.press("k")
    it.at(order[3])
    it.press("z")
    it.at(order[2])
    it.press("Control+z")
    it.at(order[1])
    assert list(it.kept()) == [photos.samples[order[0]]]
    # Also what was decided before the page was opened.
    it.page.reload()
    it.at(order[1])
    it.press("z")
    it.at(order[0])
    it.press("z")
    expect(it.page.locator("#last")).to_have_text("Nothing to take back")
    assert it.kept() == {}
    assert [undone for *_, undone in history(it.review.decisions.path)] == [True] * 3


def test_another_class_by_typing(it: Opened, photos: Audit) -> None:
    order = it.suspects
    it.at(order[0])
    it.press("c")
    it.page.keyboard.type("zzz")
    expect(it.page.locator("#found-count")).to_have_text("No class is called so.")
    it.press("Enter", "Escape")
    assert it.kept() == {}
    for wanted, typed in (("gold", "GOL"), ("green", "een"), ("red", "re"), ("green", "g ↓")):
        place = order[len(it.kept())]
        it.at(place)
        it.press("c")
        it.page.keyboard.type(typed.removesuffix(" ↓"))
        if typed.endswith("↓"):
            it.press("ArrowDown")
        it.press("Enter")
        it.at(order[order.index(place) + 1])
        assert it.kept()[photos.samples[place]][1] == wanted
    # What was chosen last is on top when nothing is typed.
    it.press("c")
    expect(it.page.locator("#found li").first).to_have_text("green")
    it.press("Escape", "k")
    it.at(order[5])


def test_filters(it: Opened, photos: Audit) -> None:
    findings, page = photos.findings, it.page
    it.at(it.suspects[0])
    given, suggested = findings.given[it.suspects[4]], findings.suggested[it.suspects[4]]
    of_pair = alike(it, given, suggested)
    page.select_option("#pair", f"{given}>{suggested}")
    it.at(of_pair[0])
    names = it.audit.class_names
    chosen = page.locator("#pair option:checked").inner_text()
    assert chosen == (f"given {names[given]}, suggested {names[suggested]} ({len(of_pair)})")
    page.locator("#main").focus()
    for place in of_pair:
        it.at(place)
        it.press("u")
    it.at("end")
    page.select_option("#shown", "decided")
    it.at(of_pair[0])
    expect(page.locator("#decided")).to_have_text("Left out as unsure")
    page.select_option("#order", "plausible")
    page.select_option("#pair", "")
    named = photos.samples[of_pair[0]]
    page.locator("#text").fill(named.upper())
    expect(page.locator("#position")).to_have_text("1 of 1")
    expect(page.locator("#name")).to_have_text(named)
    page.locator("#text").fill("")
    page.select_option("#shown", "all")
    expect(page.locator("#position")).to_contain_text(f"of {len(it.suspects)}")
    page.select_option("#scope", "everything")
    expect(page.locator("#position")).to_contain_text("of 150")
    page.select_option("#order", "suspicious")
    page.select_option("#shown", "undecided")
    expect(page.locator("#position")).to_contain_text(f"of {150 - len(of_pair)}")


def test_all_of_a_confusion_are_accepted_at_once_and_taken_back(it: Opened, photos: Audit) -> None:
    findings, first = photos.findings, it.suspects[0]
    pair = (findings.given[first], findings.suggested[first])
    together = alike(it, *pair)
    rest = [n for n in it.suspects if n not in together]
    assert len(together) > 1
    it.at(first)
    it.press("g")
    it.page.get_by_role("button", name="Cancel").click()
    assert it.kept() == {}
    it.page.locator("#accept-all").click()
    words = it.page.locator("#group-words")
    expect(words).to_contain_text(f"{len(together)} undecided, given {it.name(pair[0])}")
    it.page.locator("#group-accept").click()
    it.at(rest[0])
    expected = {photos.samples[n]: ("accept", it.name(pair[1])) for n in together}
    assert it.kept() == expected
    it.press("k")
    it.at(rest[1])
    it.press("z")
    it.at(rest[0])
    assert it.kept() == expected
    it.press("z")
    expect(it.page.locator("#position")).to_contain_text(f"of {len(it.suspects)}")
    expect(it.page.locator("#last")).to_have_text(f"Taken back: {len(together)}")
    assert it.kept() == {}


def test_a_picture_is_zoomed_by_keys_and_clicks(it: Opened) -> None:
    it.at(it.suspects[0])
    picture = it.page.locator("#stage img")

    def width() -> float:
        return picture.bounding_box()["width"]

    before = width()
    it.press("+", "+", "-")
    assert width() == pytest.approx(2 * before, abs=2)
    for times in (4, 8, 1):
        picture.click()
        assert width() == pytest.approx(times * before, abs=2)
    it.press("+", "ArrowRight")
    it.at(it.suspects[1])
    assert width() == pytest.approx(before, abs=2)
    assert it.kept() == {}


def test_the_end_says_so_and_offers_the_rest(browser: Browser, tmp_path: Path) -> None:
    audit = make_photos(tmp_path / "photos", samples=30)
    with opened(browser, audit, tmp_path) as it:
        order = it.suspects
        it.at(order[0])
        it.press("ArrowRight")
        for place in order[1:]:
            it.at(place)
            it.press("k")
        it.at("end")
        it.page.get_by_role("button", name="Look at the 1 passed over").click()
        it.at(order[0])
        it.press("k")
        it.at("end")
        assert "All suspects are decided" in it.text("#stage")
        it.press("k", "a", "u", "1", "c")
        assert len(it.kept()) == len(order)
        with it.page.expect_download() as download:
            it.page.get_by_role("button", name="Export CSV").click()
        with download.value.path().open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["sample"] for row in rows] == list(audit.samples)
        assert sum(row["decision"] == "keep" for row in rows) == len(order)
        it.page.get_by_role("button", name="Look at everything").click()
        it.at(audit.findings.order[len(order)])
        # Nothing else is suggested here, so there is nothing to accept.
        it.press("a")
        expect(it.page.locator("#accept")).to_be_disabled()
        it.press("2")
        it.at(audit.findings.order[len(order) + 1])
        assert f"{len(order)} of {len(order)} suspects, 1 other," in it.text("#counts")


def test_two_tabs_see_each_other(browser: Browser, photos: Audit, tmp_path: Path) -> None:
    with opened(browser, photos, tmp_path) as it, open_page(browser) as page:
        page.goto(it.review.address)
        other = replace(it, page=page)
        order = it.suspects
        it.at(order[0])
        other.at(order[0])
        it.press("k")
        it.at(order[1])
        expect(page.locator("#decided")).to_contain_text("Kept as")
        expect(page.locator("#counts")).to_contain_text("1 of ")
        # The last decision holds, and what the other has done is passed over.
        other.press("u")
        other.at(order[1])
        other.press("u")
        other.at(order[2])
        expect(it.page.locator("#decided")).to_have_text("Left out as unsure")
        it.press("ArrowLeft")
        it.at(order[0])
        expect(it.page.locator("#decided")).to_have_text("Left out as unsure")
        it.press("u")
        it.at(order[2])
        chosen = [choice for _, choice, _, _ in history(it.review.decisions.path)]
        assert chosen == ["keep", "unsure", "unsure", "unsure"]


def test_a_write_that_fails_is_said(browser: Browser, photos: Audit, tmp_path: Path) -> None:
    with opened(browser, photos, tmp_path, errors=False) as it:
        order = it.suspects
        it.at(order[0])
        it.review.decisions._file.execute("PRAGMA busy_timeout = 100")
        other = sqlite3.connect(it.review.decisions.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        it.press("k")
        problem = it.page.get_by_role("alert")
        expect(problem).to_contain_text("Not kept.")
        expect(problem).to_contain_text("database is locked")
        it.at(order[0])
        other.execute("ROLLBACK")
        other.close()
        it.press("k")
        it.at(order[1])
        expect(problem).to_be_hidden()
        assert len(it.kept()) == 1


def slow_down(page: Page, address: str, milliseconds: int) -> None:
    """Let the page wait for what it asks for, as it would with much data or a slow disk."""
    page.evaluate(
        """([address, milliseconds]) => {
            const plain = window.fetch;
            window.fetch = async (asked, options) => {
                if (asked.startsWith(address)) {
                    await new Promise((done) => setTimeout(done, milliseconds));
                }
                return plain(asked, options);
            };
        }""",
        [address, milliseconds],
    )


def test_a_list_that_comes_after_a_decision_is_taken(it: Opened, photos: Audit) -> None:
    first, second, *_ = it.suspects
    it.at(first)
    slow_down(it.page, "queue", 500)
    it.page.locator("#scope").select_option("everything")
    it.page.locator("#main").focus()
    it.press("k")
    it.at(second)
    expect(it.page.locator("#position")).to_have_text(f"1 of {len(photos.samples) - 1}")
    it.at(second)


def test_a_decision_that_comes_after_a_list_passes_nothing_over(it: Opened, photos: Audit) -> None:
    order = it.suspects
    it.at(order[0])
    slow_down(it.page, "decide", 500)
    it.press("k")
    it.page.locator("#order").select_option("plausible")
    it.page.locator("#pair").select_option(index=1)
    pair = it.page.locator("#pair").input_value().split(">")
    expect(it.page.locator("#last")).to_contain_text("Kept as")
    it.at([place for place in alike(it, *map(int, pair)) if place != order[0]][-1])
    assert list(it.kept()) == [photos.samples[order[0]]]


@pytest.mark.slow
def test_a_kill_loses_nothing_and_doubles_nothing(
    browser: Browser, photos: Audit, tmp_path: Path
) -> None:
    photos.write(tmp_path / "audit")
    order, half = photos.findings.suspects.tolist(), 7
    # The page is to notice that its server is gone, which Chromium writes into its console.
    with Program(tmp_path / "audit") as program, open_page(browser, errors=False) as page:
        page.goto(program.address())
        it = Opened(page, None, photos)
        for number in range(half):
            it.at(order[number])
            it.press("kau"[number % 3])
        it.at(order[half])
        # Killed with a decision on its way, which may be kept or not.
        it.press("kau"[half % 3])
        program.kill()
        it.press("u")
        expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    with opened(browser, photos, tmp_path) as it:
        kept = len(it.kept())
        assert kept in (half, half + 1)
        for number in range(kept, len(order)):
            it.at(order[number])
            it.press("kau"[number % 3])
        it.at("end")
        names, findings = photos.class_names, photos.findings
        for number, row in enumerate(history(it.review.decisions.path)):
            place = order[number]
            given, suggested = names[findings.given[place]], names[findings.suggested[place]]
            choice = (("keep", given), ("accept", suggested), ("unsure", None))[number % 3]
            assert row == (photos.samples[place], *choice, False)
    assert number + 1 == len(order) > 2 * half
