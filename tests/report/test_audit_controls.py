"""What an audit's page does in a browser: choosing, sorting, saving, and the keyboard."""

from __future__ import annotations

import csv
import itertools
import json
import operator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from array_audits import Written, cards, made_audit, suspects_of, with_scores
from audits import make_findings
from browser import chromium, open_page  # noqa: F401

from labelproof.audit.labels import audit_given
from labelproof.audit.samples import Samples
from labelproof.data.load import Reading
from labelproof.report.audit import write_audit_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Position

FOREIGN = ("犬", "कुत्ता", "собака")


def saved(page: Page) -> list[dict[str, str]]:
    """What 'Save as CSV' gives, read back."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "suspects.csv"
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_pair_chosen_in_the_matrix_is_shown_and_saved(browser: Browser, photos: Written) -> None:
    audit, path = photos
    suspects = suspects_of(audit)
    given, suggested, _ = suspects[0]
    pair = [suspect for suspect in suspects if suspect[:2] == (given, suggested)]
    requests: list[str] = []
    with open_page(browser, reduced_motion="reduce") as page:
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        assert cards(page) == suspects
        page.get_by_label("whose label is more likely right").check()
        assert page.locator("#status").inner_text() == "1 to 60 of 200 samples."
        page.locator(".confusion").get_by_role(
            "button", name=f"{suggested} labelled {given}: {len(pair)}", exact=True
        ).click()
        assert cards(page) == pair
        assert page.locator("#status").inner_text() == (
            f"{len(pair)} sample{'s' if len(pair) > 1 else ''} labelled {given}, "
            f"suggested {suggested}."
        )
        assert page.locator(".confusion [aria-pressed=true]").count() == 1
        assert [row["sample"] for row in saved(page)] == [name for _, _, name in pair]
        page.get_by_role("button", name="Reset").click()
        assert len(cards(page)) == len(suspects)
        page.get_by_label("sorted by").select_option("least")
        assert cards(page) == suspects[::-1]
        for part, order in enumerate(("given", "suggested", "name")):
            page.get_by_label("sorted by").select_option(order)
            assert cards(page) == sorted(suspects, key=operator.itemgetter(part))
        page.get_by_label("containing").fill("ANT/")
        assert cards(page) == sorted(
            (suspect for suspect in suspects if suspect[2].startswith("ant/")),
            key=lambda suspect: suspect[2],
        )
        page.get_by_label("containing").fill("nothing like it")
        assert page.locator("#status").inner_text() == "No sample fits."
        assert page.get_by_role("button", name="Save as CSV").is_disabled()
    assert {url.split(":")[0] for url in requests} <= {"file", "data", "blob"}
    assert sum(url.startswith("file:") for url in requests) == 1


def test_what_is_saved_is_the_file_of_suspects(browser: Browser, tmp_path: Path) -> None:
    names = ('a,"b"', "=1+1", "multi\nline", *FOREIGN)
    hostile, samples = made_audit(120, names)
    hostile = replace(hostile, samples=[f'-{i},"{names[i % 6]}' for i in range(120)])
    path = write_audit_page(tmp_path / "page.html", hostile, Samples(hostile, samples.dataset))
    with open_page(browser, path, reduced_motion="reduce") as page:
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as CSV").click()
        assert Path(download.value.path()).read_bytes() == hostile.suspects_csv().encode()


def test_the_keyboard_reaches_everything(browser: Browser, photos: Written) -> None:
    audit, path = photos
    names = [name for _, _, name in suspects_of(audit)]
    with open_page(browser, path, viewport={"width": 1200, "height": 800}) as page:
        page.get_by_label("whose label is more likely right").check()

        def focused(part: str) -> str:
            return page.evaluate(f"document.activeElement.querySelector('{part}')?.textContent")

        page.get_by_role("button", name="Save as CSV").focus()
        page.keyboard.press("Tab")
        assert focused(".name") == names[0]
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert focused(".name") == names[1]
        page.keyboard.press("ArrowDown")
        columns = page.evaluate(
            "getComputedStyle(document.getElementById('gallery')).gridTemplateColumns"
        )
        assert focused(".name") == names[1 + len(columns.split())]
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name=names[1])
        assert dialog.is_visible()
        page.keyboard.press("ArrowRight")
        assert page.locator("#enlarged-name").inner_text() == names[2]
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
        # The dialog returns the focus in an event that comes after the key.
        third = "document.querySelectorAll('#gallery .card')[2]"
        page.wait_for_function(f"document.activeElement === {third}")
        assert focused(".name") == names[2]
        page.keyboard.press("End")
        page.keyboard.press("ArrowRight")
        assert page.locator("#page").inner_text() == "Page 2 of 4"
        # One stop for the matrix, and its arrow keys end on another number.
        stops = page.locator(".confusion .pair[tabindex='0']")
        assert stops.count() == 1
        before = stops.get_attribute("aria-label")
        stops.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        assert stops.count() == 1
        assert stops.get_attribute("aria-label") != before
        page.keyboard.press("Enter")
        assert stops.get_attribute("aria-pressed") == "true"


def test_a_screen_reader_finds_its_way(browser: Browser, photos: Written) -> None:
    _, path = photos
    with open_page(browser, path, reduced_motion="reduce") as page:
        levels = page.eval_on_selector_all(
            "h1, h2, h3", "headings => headings.map(heading => Number(heading.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
        assert page.locator("main").count() == 1
        assert page.locator("#status[role=status]").count() == 1
        for every, has in {
            "select, input": "it.labels.length",
            "button, a": "(it.ariaLabel ?? it.textContent).trim()",
            "img": "it.alt",
            "th": "it.scope",
            "section": "it.hasAttribute('aria-labelledby')",
        }.items():
            assert page.eval_on_selector_all(every, f"all => all.every(it => {has})"), every
        ids = page.eval_on_selector_all("[id]", "all => all.map(element => element.id)")
        assert len(ids) == len(set(ids))


def test_a_hundred_classes_are_clustered_and_pointed_at(browser: Browser, tmp_path: Path) -> None:
    names = tuple(f"class {number}" for number in range(100))
    base, true = make_findings(4_000, 100, wrong=0)
    # Each class is taken for the one 50 further on, and for no other.
    given = np.where(np.arange(4_000) % 5 == 0, (true + 50) % 100, true)
    score = np.where(given != true, 0.9, 0.1)
    matrix = 0.8 * np.eye(100) + 0.2 * np.roll(np.eye(100), 50, axis=1)
    findings = replace(base, given=given, transition=matrix)
    findings = with_scores(replace(findings, suggested=true), score)
    audit, samples = made_audit(4_000, names, findings=findings)
    path = write_audit_page(tmp_path / "report.html", audit, samples)
    assert path.stat().st_size < 10_000_000
    order = json.loads(path.read_text("utf-8").partition('id="matrices">')[2].partition("<")[0])
    row = order["order"].index(7)
    column = order["order"].index(57)
    assert abs(row - column) == 1
    suspects = int(((true == 7) & (given == 57)).sum())
    for touch in (False, True):
        with open_page(
            browser, path, viewport={"width": 390, "height": 800}, has_touch=touch
        ) as page:
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            cells = page.locator(".heat-cells").first
            box = cells.bounding_box()
            side = box["width"] / 100
            assert side >= 12, "a finger has to hit it"
            at: Position = {"x": (column + 0.5) * side, "y": (row + 0.5) * side}
            (cells.tap if touch else cells.click)(position=at)
            words = f"class 7 labelled class 57: {suspects} suspects."
            readout = page.locator(".readout").first
            assert readout.locator("span").inner_text() == words
            assert page.locator(".heat-grid").first.locator(".at").all_inner_texts() == [
                "class 57",
                "class 7",
            ]
            if touch:
                readout.get_by_role("button", name="Show them").tap()
            assert {card[:2] for card in cards(page)} == {("class 57", "class 7")}


def test_the_strip_comes_first_with_likeliest_classes(browser: Browser, photos: Written) -> None:
    audit, path = photos
    names = [name for _, _, name in suspects_of(audit)]
    first = int(audit.findings.suspects[0])
    likeliest = [audit.class_names[label] for label in audit.findings.likeliest[first]]
    with open_page(browser, path) as page:
        strip = page.locator("#strip .card")
        assert page.locator("h1 + ol#strip + .finding").count() == 1
        assert strip.locator(".name").all_text_contents() == names[:10]
        for card in (strip.first, page.locator("#gallery .card").first):
            said = card.locator(".likely > span").all_inner_texts()
            assert [text.split() for text in said] == [
                [name, share] for name, share in zip(likeliest, ("70%", "20%", "10%"), strict=True)
            ]
        # It opens though the list below is about something else.
        page.get_by_label("containing").fill("nothing like it")
        strip.nth(2).click()
        assert page.locator("#enlarged-name").inner_text() == names[2]


def test_rows_are_found_by_text_and_a_warning_is_a_box(browser: Browser, tmp_path: Path) -> None:
    lines = [
        f"{n},the parcel of customer number {n} never came,{'no' if n % 2 else 'yes'}"
        for n in range(60)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["n,comment,label", *lines]), encoding="utf-8")
    dataset = Reading("label").load(tmp_path / "t.csv", features=False)
    told = np.tile([[0.9, 0.1], [0.9, 0.1]], (30, 1))
    audit = audit_given(told, dataset, data=tmp_path / "t.csv")
    with open_page(browser, reduced_motion="reduce") as page:
        page.goto(audit.report(tmp_path / "report.html").as_uri())
        page.get_by_label("containing").fill("number 18 never")
        assert page.locator("#gallery .prose").all_inner_texts() == [
            "the parcel of customer number 18 never came"
        ]
        page.locator("#gallery .card").first.click()
        assert page.locator("#enlarged-look .prose").get_attribute("colspan") == "3"
        page.keyboard.press("Escape")
        width = page.locator(".finding").evaluate("it => getComputedStyle(it).borderTopWidth")
        assert width == "2px"
