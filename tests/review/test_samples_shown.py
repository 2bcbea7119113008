"""What is shown of samples of every kind, in a real browser."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from audits import agreeing, make_audit, make_findings, make_photos
from browser import LEFTS, chromium  # noqa: F401
from review.opened import expect, opened

from labelproof.audit.findings import Findings
from labelproof.audit.folder import Audit
from labelproof.data.images import sample_names
from labelproof.data.load import load_dataset

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPT, IMAGE = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'


def unknown(names: tuple[str, ...], *, samples: int = 40) -> Audit:
    findings, _ = make_findings(samples, len(names), wrong=0.5)
    called = [f"{IMAGE}/{number}" for number in range(samples)]
    return make_audit(findings, names, name=f"of {SCRIPT}", samples=called)


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    audit = unknown((SCRIPT, IMAGE, "{{ 7 * 7 }}"))
    with opened(browser, audit, tmp_path) as it:
        it.page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        names = set()
        for place in it.suspects[:8]:
            it.at(place)
            names |= {it.text("#given"), it.text("#suggested")}
            assert it.text("#stage strong") == audit.samples[place]
            it.press("a")
        assert names == set(audit.class_names)
        it.at(it.suspects[8])
        it.press("c")
        assert it.page.locator("#found li").all_inner_texts()[:2] != []
        it.page.keyboard.type("<script")
        it.press("Enter")
        it.at(it.suspects[9])
        assert f"of {SCRIPT}" in it.text("h1")
        assert it.page.title() == f"Review of of {SCRIPT}"
        assert it.page.locator("main img, #pair img, #classes img").count() == 0
        with it.page.expect_download() as download:
            it.page.locator("#export").click()
        with download.value.path().open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert rows[it.suspects[8]]["label"] == SCRIPT


def test_a_vanished_picture_can_be_decided(browser: Browser, tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", samples=60)
    first, second, third = photos.findings.suspects[:3].tolist()
    names = list(photos.samples)
    (tmp_path / "photos" / names[second]).unlink()
    # Chromium writes a line about every picture that it does not get.
    with opened(browser, photos, tmp_path, errors=False) as it:
        (tmp_path / "photos" / names[first]).unlink()
        it.page.reload()
        for place, why in ((first, ""), (second, "is no longer in the data")):
            it.at(place)
            shown = it.text("#stage")
            assert "This picture cannot be shown." in shown
            assert names[place] in shown
            assert why in shown
            it.press("u")
        it.at(third)
        expect(it.page.locator("#stage img")).to_be_visible()
        assert len(it.kept()) == 2


def test_copies_and_outliers_are_pointed_out(browser: Browser, tmp_path: Path) -> None:
    photos = make_photos(tmp_path / "photos", samples=60)
    first, second, third = photos.findings.suspects[:3].tolist()
    copies, outlier = np.full(60, -1), np.arange(60) == second
    copies[first] = third
    with opened(browser, replace(photos, duplicate_of=copies, outlier=outlier), tmp_path) as it:
        label = photos.class_names[photos.findings.given[third]]
        same = f"; nearly the same as {photos.samples[third]}, labelled {label}"
        for place, remark in ((first, same), (second, "; like no other sample"), (third, "")):
            it.at(place)
            assert it.text("#score").endswith(f"likely to be wrong{remark}")
            it.press("k")
        for scope, place in (("duplicates", first), ("outliers", second)):
            it.page.select_option("#scope", scope)
            it.page.select_option("#shown", "all")
            expect(it.page.locator("#name")).to_have_text(photos.samples[place])
            expect(it.page.locator("#position")).to_have_text("1 of 1")
    weak = replace(photos, findings=agreeing(photos.findings, 0.4))
    with opened(browser, weak, tmp_path / "weak") as it:
        it.at(weak.findings.suspects[0])
        assert it.text("#score").endswith(", no probability")


def test_rows_are_shown_as_cells(browser: Browser, tmp_path: Path) -> None:
    table = tmp_path / "plants.csv"
    lines = [f"{n / 7:.3f},<i>{n % 5}</i>,{'ab'[n % 2]}" for n in range(60)]
    table.write_text("\n".join(["length,colour,label", *lines, ""]))
    dataset = load_dataset(table)
    names = sample_names(dataset.train, table)
    findings, _ = make_findings(len(names), 2)
    given = replace(findings, given=dataset.train.labels)
    audit = make_audit(given, dataset.class_names, data=str(table), kind="rows", samples=names)
    with opened(browser, audit, tmp_path) as it:
        place = it.suspects[0]
        it.at(place)
        cells = it.page.locator("#stage tr")
        length, colour, _ = lines[place].split(",")
        expect(cells.filter(has_text="length")).to_contain_text(length)
        expect(cells.filter(has_text="colour")).to_contain_text(colour)
        # Beside it what is typical of both classes: of a column with few values, the commonest.
        heads = it.page.locator("#stage th[scope=col]").all_inner_texts()
        assert heads[1:] == [
            "this row",
            *(f"typical {it.name(n)}" for n in labels(findings, place)),
        ]
        expect(cells.filter(has_text="length").locator("td")).to_have_count(3)
        it.page.locator("#text").fill(f"{length}")
        expect(it.page.locator("#position")).to_have_text("1 of 1")
        it.page.locator("#main").focus()
        it.press("k")
        it.at("end")


def labels(findings: Findings, place: int) -> tuple[int, int]:
    return int(findings.given[place]), int(findings.suggested[place])


def test_many_classes_and_samples(browser: Browser, tmp_path: Path) -> None:
    audit = unknown(tuple(f"class {number}" for number in range(2000)), samples=5_000)
    with opened(browser, audit, tmp_path) as it:
        it.at(it.suspects[0])
        it.press("c")
        it.page.keyboard.type("1999")
        it.press("Enter")
        it.at(it.suspects[1])
        assert [label for _, label in it.kept().values()] == ["class 1999"]


def test_it_fits_the_screen_by_day_and_night(browser: Browser, tmp_path: Path) -> None:
    audit = unknown(("a", "b" * 300, " ".join(["long"] * 60)))
    with opened(browser, audit, tmp_path) as it:
        it.at(it.suspects[0])
        for width, height in ((360, 640), (720, 360), (1280, 800)):
            it.page.set_viewport_size({"width": width, "height": height})
            assert it.page.evaluate("document.documentElement.scrollWidth") <= width
            for button in ("keep", "accept", "another", "unsure", "next", "undo"):
                place = it.page.locator(f"#{button}")
                place.scroll_into_view_if_needed()
                expect(place).to_be_in_viewport(ratio=0.9)
        body = it.page.locator("body")
        it.page.emulate_media(color_scheme="light")
        expect(body).to_have_css("background-color", "rgb(255, 255, 255)")
        it.page.emulate_media(color_scheme="dark")
        expect(body).to_have_css("background-color", "rgb(15, 19, 24)")
