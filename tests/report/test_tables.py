import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from html_page import Page
from made_records import committed, fill_table, made_record

from labelproof.experiments.grids import GRIDS, plan
from labelproof.experiments.records import RecordStore
from labelproof.experiments.tables import compare_all, compare_cells, make_table
from labelproof.report import tables
from labelproof.report.page import DATASETS, TABLES

TABLES_OF_ALL = [(name, dataset) for name, grid in GRIDS.items() for dataset in grid.datasets]
NASTY = "<b>&\"'|*_%$#{}\\~^</b>"


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    store = RecordStore(tmp_path)
    cells = {
        ("CE", "0.6"): [40.05, 39.05],
        ("CE+SR", "0.6"): [77.77],
        ("FL+SR", "0.6"): [77.85],
        ("GCE+SR", "0.6"): [78.58],
        ("rce", "0.6"): [60.0],
    }
    fill_table(store, "symmetric", "cifar10", cells)
    return store


def made_table(method: str) -> pd.DataFrame:
    """Two rows, of which one has a name that is dangerous in every language."""
    store = RecordStore(Path("nowhere"))
    table = make_table(store, "symmetric", "cifar10", methods=["FL", "CE"], columns=["0.6"])
    return compare_cells(table.assign(method=[method, "CE"], mean=[60.0, 40.0], n=1))


def markdown_cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_markdown_has_ours_the_papers_and_the_difference(store: RecordStore) -> None:
    rows = ["CE", "FL", "CE+SR", "FL+SR", "GCE+SR", "rce"]
    text = tables.table_markdown(make_table(store, "symmetric", "cifar10", methods=rows))
    cells = markdown_cells(text)
    assert cells[0] == ["method", "", "0.0", "0.2", "0.4", "0.6", "0.8"]
    by_line = {(row[0], row[1]): row[2:] for row in cells[2:]}
    at = GRIDS["symmetric"].columns.index("0.6")
    assert by_line["CE", "ours"][at] == "39.55 ± 0.71 (2)"
    assert by_line["CE+SR", "ours"][at] == "**77.77** (1)"
    assert by_line["rce", "ours"][at] == "60.00 (1)"
    assert by_line["FL", "ours"] == ["–"] * 5
    first = [row[0] for row in cells].index("CE+SR")
    assert cells[first + 1][1] == "paper"
    assert cells[first + 1][2 + at] == "78.18 ± 0.36"
    assert cells[first + 2][1] == "difference"
    assert cells[first + 2][2:] == ["–", "–", "–", "-0.41", "–"]
    # The paper has no such row, so nothing is said about it.
    assert cells[-1][0] == "rce"
    assert text.count("**") == 2 * 3
    assert "seeds 1, 2" in text


def test_a_dangerous_name_stays_in_its_cell_in_every_format() -> None:
    rows = markdown_cells(tables.table_markdown(made_table("a|b*c")))
    assert {len(row) for row in rows} == {3}
    assert rows[2][0] == "a\\|b\\*c"
    text = tables.table_latex(made_table(NASTY))
    (row,) = [line for line in text.splitlines() if "ours" in line and "<b>" in line]
    assert row.strip().startswith(
        r"""<b>\&"'|*\_\%\$\#\{\}\textbackslash{}\textasciitilde{}\textasciicircum{}</b> & ours &"""
    )
    name = 'gce(q=0.7,clamp=1e-7)"'
    rows = list(csv.reader(io.StringIO(tables.table_csv(made_table(name)))))
    assert rows[1][2] == name
    assert {len(row) for row in rows} == {12}
    page = tables.table_html(made_table(NASTY))
    cells = Page(page)
    assert not {"b", "script"} & set(cells.tags)
    assert not cells.sources
    assert NASTY in cells.texts
    assert cells.tags.count("tr") == 1 + 2 * 3
    assert page.startswith("<!doctype html>")
    assert "<strong>60.00</strong> (1)" in page


def test_columns_are_aligned_and_what_is_opened_is_closed(store: RecordStore) -> None:
    for name, dataset in TABLES_OF_ALL:
        table = make_table(store, name, dataset)
        lines = [line for line in tables.table_markdown(table).splitlines() if line.startswith("|")]
        bars = [[at for at, letter in enumerate(line) if letter == "|"] for line in lines]
        assert all(places == bars[0] for places in bars)
        text = tables.table_latex(table)
        rows = [line for line in text.splitlines() if line.endswith(r"\\")]
        (specification,) = re.findall(r"\\begin\{tabular\}\{(l+r+)\}", text)
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {len(specification)}
        assert text.count("{") == text.count("}")
        assert text.count("$") % 2 == 0
        assert re.findall(r"\\begin\{(\w+)\}", text) == ["table", "tabular"]
        assert re.findall(r"\\end\{(\w+)\}", text) == ["tabular", "table"]
        for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
            assert text.count(rule) == 1
        assert not set("±–λ") & set(text)
        # A percent sign would comment the rest of its line away.
        body = text.split("\n", 1)[1]
        assert not re.search(r"(?<!\\)%", body)
    text = tables.table_latex(make_table(store, "symmetric", "cifar10"))
    for marked in (r"\textbf{78.58} (1)", r"78.18 $\pm$ 0.36", "$-0.41$", "$+0.93$"):
        assert marked in text


def test_csv_has_a_line_for_each_cell_and_nothing_where_nothing_is(store: RecordStore) -> None:
    table = make_table(store, "symmetric", "cifar10", methods=["CE", "CE+SR", "rce"])
    head, *lines = tables.table_csv(table).splitlines()
    assert head == (
        "table,dataset,method,column,mean,std,n,paper_mean,paper_std,difference,best_mean,best_std"
    )
    assert len(lines) == 15
    assert "symmetric,cifar10,CE,0.6,39.55,0.707107,2,38.7,0.53,0.85,39.55,0.707107" in lines
    assert "symmetric,cifar10,rce,0.6,60,,1,,,,60," in lines
    assert any(line.startswith("symmetric,cifar10,CE,0.2,,,0,") for line in lines)


def test_every_format_takes_every_cell(store: RecordStore) -> None:
    fill_table(store, "symmetric", "cifar10", {("mae", "0.6"): [0.0, 100.0]})
    for write in tables.FORMATS.values():
        # Cells with and without records, and with and without what the paper has.
        text = write(make_table(store, "symmetric", "cifar10", methods=["CE", "FL", "rce", "mae"]))
        assert "nan" not in text.casefold().replace("dominant", "")
        assert "None" not in text


def test_captions_and_findings_say_what_is_there(store: RecordStore) -> None:
    full = make_table(store, "symmetric", "cifar10")
    assert "of the last epoch" in tables.caption(full)
    assert tables.finding(full) == (
        "4 of 45 cells have records. Of 4 that the paper has too, 4 agree with it: they differ by "
        "at most 1 point or twice the spread of the runs."
    )
    empty = make_table(store, "sweep-p", "cifar10")
    assert tables.finding(empty) == "0 of 6 cells have records."
    assert "no records yet" in tables.caption(empty)
    assert "paper" not in tables.caption(empty)
    assert set(tables.SUFFIXES.values()) == set(tables.FORMATS)
    assert set(TABLES) == set(GRIDS)
    assert set(DATASETS) == {dataset for grid in GRIDS.values() for dataset in grid.datasets}


def test_the_summary_counts_names_what_differs_and_what_is_missing(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    cells = {("CE", "0.6"): [40.05], ("CE+SR", "0.6"): [77.77], ("FL", "0.6"): [45.0, 46.0]}
    fill_table(store, "symmetric", "cifar10", cells)
    found = compare_all(store)
    shares = markdown_cells(tables.share_of_cells(found))
    assert ["symmetric noise", "CIFAR-10", "45", "3", "1 to 2", "1", "33%"] in shares
    assert ["symmetric noise", "MNIST", "45", "0", "–", "0", "–"] in shares
    outside = markdown_cells(tables.list_outside(found))[2:]
    # The largest difference first; CE is in the comparison too.
    assert outside[0][2:] == ["FL", "0.6", "45.50 ± 0.71 (2)", "38.86 ± 0.07", "+6.64", "1.42"]
    assert outside[1][2:] == ["CE", "0.6", "40.05 (1)", "38.70 ± 0.53", "+1.35", "1.06"]
    assert outside[2][2:] == ["CE", "sym-0.6", "40.05 (1)", "38.70", "+1.35", "1.00"]
    missing = tables.list_missing(found)
    assert "- symmetric noise, CIFAR-10: CE at 0.0, 0.2, 0.4, 0.8; FL at" in missing
    assert "; NLNL;" in missing
    assert "- symmetric noise, MNIST: all 45" in missing
    text = tables.summary(found)
    assert all(
        part in text for part in (missing, tables.list_outside(found), tables.share_of_cells(found))
    )
    found = compare_all(RecordStore(Path("nowhere")))
    assert tables.list_outside(found) == "None of those measured."
    assert tables.list_missing(found).count(": all ") == found.groupby(["table", "dataset"]).ngroups


def test_a_later_table_shows_the_best_epoch_and_what_others_published(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    (run,) = plan("beyond", "cifar10", methods=["JAL-CE"], columns=["sym-0.8"])
    store.add(made_record(run.configuration, [66.0, 64.5]))
    made = make_table(store, "beyond", "cifar10", methods=["JAL-CE", "ELR"], columns=["sym-0.8"])
    assert markdown_cells(tables.table_markdown(made))[2:] == [
        ["JAL-CE", "last", "64.50 (1)"],
        ["", "best", "66.00 (1)"],
        ["", "published", "65.43"],
        ["ELR", "last", "–"],
    ]
    (line,) = [row for row in csv.DictReader(io.StringIO(tables.table_csv(made))) if row["mean"]]
    assert (line["mean"], line["best_mean"]) == ("64.5", "66")
    # It is no table of the paper, so nothing in it reproduces or fails to.
    assert not set(compare_all(store)["table"]) & {"beyond", "human"}
    assert "agree" not in tables.finding(made)
    # Runs that were trained before there was such a table are in it.
    ours = make_table(committed(), "beyond", "cifar10", methods=["3CE+SR+l1"])
    assert ours["n"].all()
