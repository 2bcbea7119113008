"""The page of an audit: the file, and how it looks in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from array_audits import Written, cards, made_audit, suspects_of, with_scores
from audits import agreeing, make_findings, make_photos
from browser import LEFTS, chromium, open_page  # noqa: F401
from PIL import Image

import labelproof
from labelproof.audit.findings import Estimate
from labelproof.audit.samples import Samples, open_samples
from labelproof.data.images import sample_names
from labelproof.data.load import load_dataset
from labelproof.report.audit import list_samples, look_at, seen_first, write_audit_page
from labelproof.report.audit_words import finding

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONG = "L" * 200
HOSTILE = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '=1+1,"x"\n', LONG)
FOREIGN = ("犬", "कुत्ता", "собака")


def embedded(path: Path, block: str) -> dict[str, object]:
    """What a page holds as JSON."""
    text = path.read_text(encoding="utf-8")
    found = re.search(rf'<script type="application/json" id="{block}">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_the_page_stands_alone_and_runs_its_own_script_only(photos: Written) -> None:
    audit, path = photos
    text = path.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in policy[1]
    script = re.search(r'<script type="module">(.*?)</script>', text, re.S)
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert "innerHTML" not in script[1]
    assert not re.search(r'(?:src|href)="(?!data:image/|#)', text)
    assert text.index(finding(audit.findings)) < text.index("<h2")
    assert "does not cover what the network cannot tell apart" in text
    again = write_audit_page(path.parent / "again.html", audit, open_samples(audit))
    assert again.read_bytes() == path.read_bytes()


def test_hostile_names_are_text_in_the_file(tmp_path: Path) -> None:
    names = (*HOSTILE, os.fsdecode(b"caf\xe9"))
    audit, samples = made_audit(80, names)
    audit = replace(audit, name=HOSTILE[0], samples=[f"</script>\u2028{i}" for i in range(80)])
    path = write_audit_page(tmp_path / "page.html", audit, Samples(audit, samples.dataset))
    text = path.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert text.count("</script>") == 4
    assert "\u2028" not in text
    data = embedded(path, "data")
    assert data["classes"] == list(names)
    assert set(data["names"]) == set(audit.samples)  # pyright: ignore[reportArgumentType]


def test_a_name_does_not_turn_the_words_around_it(browser: Browser, tmp_path: Path) -> None:
    names = ("cat\u202e", "\u2067dog")
    audit, samples = made_audit(80, names)
    path = write_audit_page(tmp_path / "page.html", audit, samples)
    words = path.read_text(encoding="utf-8").partition('<script type="application/json"')[0]
    assert "cat" in words
    assert not set("\u202e\u2067") & set(words)
    assert embedded(path, "data")["classes"] == list(names)
    with open_page(browser, path) as page:
        for control, label in (("#given", "0"), ("#suggested", "1")):
            page.select_option(control, label)
        lefts = page.locator("#status").evaluate(LEFTS)
        assert lefts == sorted(lefts)


def test_the_noise_matrix_has_its_intervals(photos: Written, tmp_path: Path) -> None:
    audit, path = photos
    findings = audit.findings
    share = Estimate(
        findings.transition[0, 1], findings.transition_low[0, 1], findings.transition_high[0, 1]
    )
    assert f'title="ant labelled bee: {share.as_percent()}"' in path.read_text(encoding="utf-8")
    many, samples = made_audit(400, tuple(f"class {number}" for number in range(21)))
    text = write_audit_page(tmp_path / "page.html", many, samples).read_text(encoding="utf-8")
    assert "true classes (rows) and given labels (columns), 21 by 21" in text
    assert 'class="heat-grid"' in text
    assert '<table class="heat' not in text


CONTRASTS = """() => {
  const channels = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
    return [red, green, blue, alpha];
  };
  const paper = (element) => {
    if (!element) return [255, 255, 255];
    const [red, green, blue, alpha] = channels(getComputedStyle(element).backgroundColor);
    if (alpha === 1) return [red, green, blue];
    const below = paper(element.parentElement);
    return [red, green, blue].map((value, index) => alpha * value + (1 - alpha) * below[index]);
  };
  const light = (colour) => {
    const [red, green, blue] = colour.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const said = [...document.querySelectorAll("main *")].filter((element) =>
    element.checkVisibility() && !element.closest("svg, option, :disabled") &&
    [...element.childNodes].some((node) => node.nodeType === 3 && /\\w/.test(node.textContent)));
  return said.map((element) => {
    const [ink, ground] = [light(channels(getComputedStyle(element).color)), light(paper(element))];
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    return [contrast, element.outerHTML.slice(0, 120)];
  });
}"""


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (360, "dark")])
def test_it_fits_and_stands_out(browser: Browser, photos: Written, width: int, scheme: str) -> None:
    viewport = {"width": width, "height": 900}
    with open_page(browser, photos[1], viewport=viewport, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(15, 19, 24)")
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 200
        assert [text for contrast, text in contrasts if contrast < 4.5] == []
        page.locator(".card").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_it_prints_on_white_without_controls(browser: Browser, photos: Written) -> None:
    audit, path = photos
    with open_page(browser, path, color_scheme="dark", reduced_motion="reduce") as page:

        def style(part: str, name: str) -> str:
            return page.evaluate(f"getComputedStyle(document.querySelector('{part}')).{name}")

        assert style("html", "scrollBehavior") == "auto"
        page.emulate_media(media="print", color_scheme="dark")
        assert not page.locator("#controls").is_visible()
        assert not page.locator("#pager").is_visible()
        assert page.locator("#gallery .card").count() == len(audit.findings.suspects)
        assert style("body", "backgroundColor") == "rgb(255, 255, 255)"
        assert style(".soft", "color") == "rgb(68, 68, 68)"
        assert style(".card", "breakInside") == style("tr", "breakInside") == "avoid"
        page.set_viewport_size({"width": 720, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth") == 720
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_hostile_and_foreign_names_are_only_text(browser: Browser, tmp_path: Path) -> None:
    audit, samples = made_audit(150, (*HOSTILE, *FOREIGN))
    audit = replace(audit, name=HOSTILE[1], samples=[f"{HOSTILE[0]}{i}" for i in range(150)])
    path = write_audit_page(tmp_path / "page.html", audit, Samples(audit, samples.dataset))
    met: list[str] = []
    with open_page(browser, viewport={"width": 360, "height": 900}) as page:
        page.on("dialog", lambda dialog: met.append(dialog.message))
        page.goto(path.as_uri())
        for sort in ("given", "suggested", "name"):
            page.get_by_label("sorted by").select_option(sort)
        page.locator(".card").first.click()
        assert page.locator("#enlarged-name").inner_text().startswith(HOSTILE[0])
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Reset").click()
        shown = {given for given, _, _ in cards(page)}
        assert shown <= {name.strip() for name in audit.class_names}
        assert page.locator("img[src=x]").count() == 0
        assert page.locator("script").count() == 4
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert not met


def test_near_duplicates_and_outliers_have_their_pictures(photos: Written, tmp_path: Path) -> None:
    audit, _ = photos
    places = np.arange(len(audit.samples))
    marked = replace(audit, duplicate_of=np.where(places == 0, 1, -1), outlier=places == 2)
    path = tmp_path / "page.html"
    write_audit_page(path, marked, open_samples(marked))
    section = path.read_text(encoding="utf-8").partition('id="alike"')[2].partition("</section>")[0]
    assert section.count('<img class="thumb" src="data:image/') == 3
    assert all(name in section for name in audit.samples[:3])


def test_one_suspect_and_none(browser: Browser, tmp_path: Path) -> None:
    base, _ = make_findings(50, 3)
    alike = replace(with_scores(base, np.where(np.arange(50) < 2, 0.6, 0.2)), suggested=base.given)
    other = replace(base, suggested=(base.given + 1) % 3)
    path = tmp_path / "page.html"
    with open_page(browser) as page:
        for suspects in (0, 1):
            findings = with_scores(other, np.where(np.arange(50) < suspects, 0.9, 0.2))
            write_audit_page(path, *made_audit(50, tuple("abc"), findings=findings))
            page.goto(path.as_uri())
            # Suspects alone, unless there is none.
            assert page.locator("#gallery .card").count() == (suspects or 50)
            assert page.locator("#strip .card").count() == suspects
            if suspects:
                page.get_by_label("and 49 whose label is more likely right").check()
            assert page.locator("#gallery .card.below").count() == 50 - suspects
            assert page.locator(".confusion").count() == suspects
            assert page.get_by_text("There is no suspect.").count() == 1 - suspects
        write_audit_page(path, *made_audit(50, tuple("abc"), findings=alike))
        page.goto(path.as_uri())
        assert [suggested for _, suggested, _ in cards(page)] == ["no other label stands out"] * 2
        assert page.locator("#gallery .card .score").all_inner_texts() == ["60.0%"] * 2
        # A model that has learned too little gives no probabilities.
        write_audit_page(path, *made_audit(50, tuple("abc"), findings=agreeing(alike, 0.4)))
        page.goto(path.as_uri())
        assert page.locator("#gallery .card .score").all_inner_texts() == ["score 0.60"] * 2


def test_rows_are_shown_by_their_cells(browser: Browser, tmp_path: Path) -> None:
    findings, true = make_findings(60, 3)
    lines = ["length,width,a,b,c,d,e,species"]
    for i in range(60):
        values = [f"{true[i] + i / 100:.2f}", f"{i}.5", *(f"{i * k % 7}" for k in range(1, 6))]
        lines.append(",".join([*values, "xyz"[findings.given[i]]]))
    table = tmp_path / "flowers.csv"
    table.write_text("\n".join(lines) + "\n")
    dataset = load_dataset(str(table), label="species")
    names = sample_names(dataset.train, table)
    audit = replace(
        made_audit(60, dataset.class_names, findings=findings)[0],
        data=str(table),
        kind="rows",
        samples=names,
        options={"label": "species"},
    )
    # One that has vanished since.
    gone = int(findings.suspects[1])
    index = audit.index.copy()
    index[gone] = -1
    samples = Samples(replace(audit, index=index), dataset)
    path = write_audit_page(tmp_path / "page.html", audit, samples)
    with open_page(browser, path, viewport={"width": 360, "height": 900}) as page:
        first = int(findings.suspects[0])
        expected = [cell for pair in samples.cells(first)[:6] for cell in pair]
        shown = page.eval_on_selector(
            "#gallery .cells", "cells => [...cells.children].map(cell => cell.textContent)"
        )
        assert shown == [*expected, "and 2 more"]
        gone_card = page.locator("#gallery .card").nth(1)
        assert gone_card.get_by_text("the row is not there any more").count()
        page.locator("#gallery .card").first.click()
        assert page.locator("#enlarged-look th[scope=row]").all_inner_texts() == [
            column for column, _ in samples.cells(first)
        ]
        page.keyboard.press("Escape")
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_vanished_image_says_so_and_names_have_no_room(browser: Browser, tmp_path: Path) -> None:
    audit = make_photos(tmp_path / "photos", samples=60)
    samples = open_samples(audit)
    (tmp_path / "photos" / audit.samples[int(audit.findings.suspects[0])]).unlink()
    path = write_audit_page(tmp_path / "report.html", audit, samples)
    with open_page(browser, path) as page:
        gone = "the image cannot be read any more"
        assert page.locator("#gallery").get_by_text(gone).count() == 1
        assert page.locator("#gallery .card").first.get_by_text(gone).count() == 1
        assert page.get_by_text("1 sample could no longer be read").is_visible()
    named = replace(audit, kind="unknown", method={"predictions": "given"})
    path = write_audit_page(tmp_path / "names.html", named, Samples(named, None))
    assert "labelproof fit" not in path.read_text(encoding="utf-8")
    with open_page(browser, path) as page:
        assert cards(page)[0] == suspects_of(named)[0]
        assert page.locator(".look:visible").count() == 0


def test_a_picture_is_shown_whole_whatever_its_shape(browser: Browser, tmp_path: Path) -> None:
    audit, samples = made_audit(60, ("ant", "bee"))
    with open_page(browser, viewport={"width": 1200, "height": 800}) as page:
        for shape in ((90, 30), (30, 90)):
            train = replace(samples.dataset.train, images=np.zeros((60, 3, *shape), np.uint8))
            flat = Samples(audit, replace(samples.dataset, splits={"train": train}))
            page.goto(write_audit_page(tmp_path / "report.html", audit, flat).as_uri())
            boxes = [page.locator(part).first.bounding_box() for part in (".look", ".look img")]
            around, inside = ((box["width"], box["height"]) for box in boxes if box is not None)
            assert inside[0] <= around[0] + 1
            assert inside[1] <= around[1] + 1


def test_a_photo_is_made_small_and_an_icon_stays_exact(tmp_path: Path) -> None:
    audit = make_photos(tmp_path / "photos", samples=30)
    first = tmp_path / "photos" / audit.samples[int(audit.findings.order[0])]
    Image.new("RGB", (1800, 1200), "teal").save(first)
    path = write_audit_page(tmp_path / "report.html", audit, open_samples(audit))
    looks = [str(look) for look in embedded(path, "looks").values()]
    assert len(looks) == 30
    assert all(look.startswith("data:image/png;base64,") for look in looks[1:])
    kind, content = looks[0].split(",")
    assert kind == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(content))).size == (320, 213)


def test_suspects_and_the_next_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, samples = made_audit(1000, tuple("abcd"))
    listed = list_samples(audit)
    assert len(listed.places) == 200
    assert listed.suspects == len(audit.findings.suspects)
    scores = audit.findings.score[listed.places]
    assert (np.diff(scores) <= 0).all()
    assert (scores[: listed.suspects] > 0.5).all()
    assert (scores[listed.suspects :] <= 0.5).all()
    monkeypatch.setattr("labelproof.report.audit.MOST", 20)
    page = write_audit_page(tmp_path / "page.html", audit, samples)
    said = f"The first 20 of {listed.suspects} suspects are listed here"
    assert said in page.read_text(encoding="utf-8")


def test_each_pair_of_classes_is_seen_before_more_of_another(tmp_path: Path) -> None:
    audit, samples = made_audit(4000, tuple("abcde"))
    findings = audit.findings
    listed = list_samples(audit)
    looks = look_at(samples, listed, limit_bytes=400_000)
    assert 60 < len(looks) < listed.suspects
    pairs = {(findings.given[i], findings.suggested[i]) for i in findings.suspects}
    seen = [listed.places[number] for number in looks]
    assert {(findings.given[i], findings.suggested[i]) for i in seen} == pairs
    order = seen_first(findings, listed)
    assert sorted(order) == list(range(len(listed.places)))
    late = order[3 * len(pairs) :]
    assert late == sorted(late)
    page = write_audit_page(tmp_path / "page.html", audit, samples, limit_bytes=400_000)
    assert f" of {listed.suspects} suspects have a picture here" in page.read_text(encoding="utf-8")


def test_cells_that_are_unusual_for_the_given_class_are_marked(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    kinds = np.array(["cat", "dog"])[np.arange(80) % 2]
    weight = np.where(kinds == "cat", 4, 30) + generator.normal(0, 0.5, 80)
    sound = np.where(kinds == "cat", "meow", "bark")
    kinds[0], sound[2] = "dog", ""  # a cat that is labelled dog, and a cell that is missing
    note = [f"seen by someone for the time number {n}" for n in range(80)]
    table = pd.DataFrame({"note": note, "weight": weight, "sound": sound, "kind": kinds})
    table.to_csv(tmp_path / "pets.csv", index=False)
    told = np.where(np.arange(80) % 2 == 0, 0.9, 0.1)[:, None]
    audit = labelproof.audit(
        tmp_path / "pets.csv", "kind", probabilities=np.hstack([told, 1 - told])
    )
    samples = open_samples(audit)
    looks = look_at(samples, list_samples(audit), limit_bytes=10**6)
    first, second, *_ = looks.values()
    assert first[0][2:] == ["meow", "dog"]
    assert first[1] == [1, 2]
    assert second[1] == []
