"""The pages of results hold no result, but places for them that the docs build fills."""

import doctest
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_records import REPOSITORY, committed, fill_table, made_record
from scripts import load_script

from labelproof.experiments.presets import paper_configuration
from labelproof.experiments.records import RecordStore

PAGES = sorted((REPOSITORY / "docs" / "reproduction").glob("*.md"))
PLACE = re.compile(r"\{\{.*?\}\}")
results = load_script("docs", "results")


def test_no_result_is_typed_by_hand() -> None:
    for page in PAGES:
        # An accuracy has two digits before its point; settings such as 0.6 and 1.2 do not.
        prose = PLACE.sub("", page.read_text())
        assert not re.findall(r"\b\d{2}\.\d+|±|\d ?%", prose), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_is_filled_whatever_there_is(page: Path) -> None:
    for store in (committed(), RecordStore(Path("nowhere"))):
        filled = results.fill(page.read_text(), store, page=page.name)
        assert "{{" not in filled
        assert "nan" not in re.findall(r"\w+", filled)
        if page.name == "tables.md" and store is committed():
            assert "98.06 ± 0.86" in filled
    assert "no records yet" in filled or page.name == "index.md"


def test_the_hook_fills_these_pages_and_no_others() -> None:
    hooks = load_script("docs", "hooks")
    text = "{{ paper symmetric mnist CE 0.8 }}"
    for place, expected in (("reproduction/index.md", "22.66 ± 0.61"), ("guide/noise.md", text)):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=place))
        assert hooks.on_page_markdown(text, page=page) == expected


def test_cells_in_a_sentence_and_those_with_noise_that_no_table_has(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    fill_table(store, "symmetric", "mnist", {("CE", "0.8"): [22.0], ("FL", "0.8"): [22.0, 24.0]})
    text = (
        "{{ ours symmetric mnist CE 0.8 }}, {{ difference symmetric mnist CE 0.8 }}, "
        "{{ ours symmetric mnist FL 0.8 }}, {{ rate symmetric mnist CE 0.8 }}, {{ records }}"
    )
    assert results.fill(text, store, page="page.md") == (
        "22.00 (1 seed), -0.66, 23.00 ± 1.41 (2 seeds), 40.00%, 3"
    )
    text = "{{ under asymmetric:0.4 cifar10 CE }}, {{ ours asymmetric cifar10 CE 0.4 }}"
    assert results.fill(text, store, page="page.md") == "(no records yet), (no records yet)"
    for seed, accuracy in ((1, 73.0), (2, 75.0)):
        run = paper_configuration("cifar10", "CE", noise="asymmetric:0.4", seed=seed)
        store.add(made_record(run, [accuracy]))
    filled = results.fill(text, store, page="page.md")
    assert filled == "74.00 ± 1.41 (2 seeds), (no records yet)"


def test_a_place_that_cannot_be_filled_is_named_with_its_page() -> None:
    for place in (
        *("tabel symmetric mnist", "table symetric mnist", "ours symmetric mnist"),
        *("figure x mnist", "under asymetric:0.4 mnist CE"),
    ):
        with pytest.raises(ValueError, match=f"page.md: cannot fill in .. {place} "):
            results.fill(f"{{{{ {place} }}}}", committed(), page="page.md")


def test_figures_are_drawn_where_there_are_records_and_they_are_stale(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records")
    fill_table(store, "sweep-tau", "cifar10", {("CE+SR", "0.5"): [70.0]})
    folder = tmp_path / "generated"
    drawn = list(results.draw(store, folder, lambda path: not path.exists()))
    assert [path.name for path in drawn] == ["sweep-tau-cifar10.svg"]
    assert list(results.draw(store, folder, lambda path: not path.exists())) == []
    text = results.fill("{{ figure sweep-tau cifar10 }}", store, page="page.md")
    assert text.startswith("[![Accuracy by epoch for different τ, symmetric noise 0.6, CIFAR-10](")
    assert text.count("(../generated/sweep-tau-cifar10.svg)") == 2


def test_the_examples_and_the_readme_say_what_the_records_say() -> None:
    outcome = doctest.testmod(results)
    assert outcome.attempted > 0
    assert outcome.failed == 0
    table = results.telling_cells(committed())
    written = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert table in written, f"README.md: the table should be\n\n{table}"


def test_a_place_may_name_settings_that_are_not_the_tables(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    paper = paper_configuration("mnist", "NLNL", noise="symmetric:0.8")
    store.add(made_record(paper, [80.0, 81.0]))
    store.add(made_record(replace(paper, epochs=720, weight_decay=0.0), [60.0, 36.0]))
    place = "symmetric mnist NLNL 0.8"
    said = results.fill(
        f"{{{{ ours {place} }}}}, {{{{ ours {place} epochs=720 weight_decay=0 }}}}, "
        f"{{{{ after 719 {place} epochs=720 weight_decay=0 }}}}, {{{{ ours {place} epochs=720 }}}}",
        store,
        page="page.md",
    )
    assert said == "81.00 (1 seed), 36.00 (1 seed), 60.00 (1 seed), (no records yet)"
    with pytest.raises(ValueError, match=r"page.md: cannot fill in .*epoch=720"):
        results.fill(f"{{{{ ours {place} epoch=720 }}}}", store, page="page.md")
