import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from html_page import Page

from labelproof.experiments.demo import SETTING, Result, rows
from labelproof.experiments.figures import Embedding
from labelproof.report import demo as page_of_the_demo
from labelproof.report.demo import finding, write_demo_page
from labelproof.training import Job
from labelproof.training.record import RunRecord, versions


def make_result(method: str, seed: int, accuracy: float, *, epochs: int = 40) -> Result:
    configuration = replace(SETTING, seed=seed, epochs=epochs)
    curve = {"test_accuracy": [50.0, accuracy], "sparse_rate": [0.1, 0.9]}
    record = RunRecord(configuration.name, configuration.as_values(), 0.41, curve, 2.0, versions())
    return Result(method, Job(configuration, Path(f"no-such-run-{method}-{seed}")), record)


@pytest.fixture(autouse=True)
def _few_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """No networks are trained here."""

    def make(*_: object) -> Embedding:
        points = np.random.default_rng(0).random((60, 2))
        return Embedding("ce", "none", 90.0, points, np.arange(60) % 10)

    monkeypatch.setattr(page_of_the_demo, "load_network", Path)
    monkeypatch.setattr(page_of_the_demo, "embed", make)


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path: Path) -> None:
    results = [
        make_result(method, seed, accuracy)
        for method, accuracy in (("CE", 70.0), ("CE+SR", 95.0), ("<script>x</script>", 60.0))
        for seed in (1, 2)
    ]
    page = write_demo_page(tmp_path / "report.html", results).read_text()
    assert write_demo_page(tmp_path / "again.html", results).read_text() == page
    found = Page(page)
    assert "script" not in found.tags
    assert "default-src 'none'" in page
    assert found.tags.count("svg") == 3
    assert all(source.startswith(("#", "data:")) for source in found.sources)
    assert "+25.0" in page
    assert "41% of the training labels are wrong" in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


def test_the_finding_says_by_how_much() -> None:
    made = {"CE": 70.0, "CE+SR": 95.0, "FL": 72.0, "FL+SR": 94.0}
    results = [make_result(method, 1, accuracy) for method, accuracy in made.items()]
    text = finding(results)
    assert "CE ends at 70.0% on clean test images, CE+SR at 95.0%" in text
    assert "+22.0 to +25.0 points" in text
    assert [row.gain for row in rows(results)] == [None, 25.0, None, 22.0]
    assert finding(results[:1]) == "41% of the training labels are wrong."
    assert "by loss: +25.0 points" in finding(results[:2])


def test_the_page_says_only_what_its_records_show(tmp_path: Path) -> None:
    results = [make_result("CE", 1, 70.0), make_result("CE+SR", 1, 95.0)]
    page = write_demo_page(tmp_path / "a.html", results).read_text()
    assert "labelproof demo --noise symmetric:0.4 --epochs 40 --seeds 1" in page
    assert "then fall" not in page
    assert "The band" not in page
    assert "too few" not in finding(results)
    short = [make_result(r.method, 1, r.record.final_accuracy, epochs=3) for r in results]
    assert "3 epochs are too few to judge" in finding(short)
    results[0].record.curve["test_accuracy"][0] = 90.0
    page = write_demo_page(tmp_path / "b.html", results).read_text()
    assert "then fall" in page
