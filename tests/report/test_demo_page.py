import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from labelproof.experiments.demo import rows
from labelproof.report.demo import finding, gains, write_demo_page
from labelproof.training.record import RunRecord, save_run, versions


def make_record(folder: Path, method: str, seed: int, accuracy: float) -> RunRecord:
    configuration = {
        "method": method,
        "loss": method.lower(),
        "noise": "symmetric:0.4",
        "seed": seed,
        "epochs": 40,
    }
    curve = {"test_accuracy": [50.0, accuracy], "sparse_rate": [0.1, 0.9]}
    name = re.sub(r"\W", "", method) + str(seed)
    record = RunRecord(name, configuration, 0.41, curve, 2.0, versions())
    generator = np.random.default_rng(int(accuracy) + seed)
    arrays = {
        "features": generator.random((60, 8)).astype(np.float16),
        "labels": np.arange(60) % 10,
        "predicted": np.arange(60) % 10,
    }
    save_run(folder, record, arrays)
    return record


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.sources += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path: Path) -> None:
    records = [
        make_record(tmp_path, method, seed, accuracy)
        for method, accuracy in (("CE", 70.0), ("CE+SR", 95.0), ("<script>x</script>", 60.0))
        for seed in (1, 2)
    ]
    page = write_demo_page(tmp_path / "report.html", records, folder=tmp_path).read_text()
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.names
    assert tags.names.count("svg") == 3
    assert all(source.startswith(("#", "data:")) for source in tags.sources)
    assert "+25.0" in page
    assert "41% of the training labels are wrong" in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


def test_the_same_records_give_the_same_page(tmp_path: Path) -> None:
    records = [make_record(tmp_path, "CE", 1, 70.0)]
    pages = [
        write_demo_page(tmp_path / name, records, folder=tmp_path).read_bytes() for name in "ab"
    ]
    assert pages[0] == pages[1]


def test_the_finding_says_by_how_much(tmp_path: Path) -> None:
    records = [
        make_record(tmp_path, "CE", 1, 70.0),
        make_record(tmp_path, "CE+SR", 1, 95.0),
        make_record(tmp_path, "FL", 1, 72.0),
        make_record(tmp_path, "FL+SR", 1, 94.0),
    ]
    text = finding(records)
    assert "CE ends at 70.0% on clean test images, CE+SR at 95.0%" in text
    assert "+22.0 to +25.0 points" in text
    assert [entry.gain for entry in gains(rows(records))] == [None, 25.0, None, 22.0]
    assert finding(records[:1]) == "41% of the training labels are wrong."
    assert "put on: +25.0 points" in finding(records[:2])


def test_the_page_says_only_what_its_records_show(tmp_path: Path) -> None:
    records = [make_record(tmp_path, "CE", 1, 70.0), make_record(tmp_path, "CE+SR", 1, 95.0)]
    page = write_demo_page(tmp_path / "a.html", records, folder=tmp_path).read_text()
    assert "labelproof demo --noise symmetric:0.4 --epochs 40 --seeds 1" in page
    assert "then fall" not in page
    assert "The band" not in page
    assert "too few" not in finding(records)
    for record in records:
        record.configuration["epochs"] = 3
    assert "3 epochs are too few to judge" in finding(records)
    records[0].curve["test_accuracy"][0] = 90.0
    page = write_demo_page(tmp_path / "b.html", records, folder=tmp_path).read_text()
    assert "then fall" in page
