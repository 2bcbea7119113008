import re
from pathlib import Path

import numpy as np
import pytest
from made_records import committed, made_record
from matplotlib.figure import Figure
from PIL import Image

from labelproof.experiments.figures import Embedding
from labelproof.experiments.grids import plan
from labelproof.experiments.records import RecordStore
from labelproof.losses import format_loss, parse_loss
from labelproof.report.figures import FIGURES, SUFFIXES, draw_embeddings, draw_figure, save_figure
from labelproof.report.tables import loss_labels


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def legend(figure: Figure) -> list[str]:
    found = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    return [text.get_text() for one in found if one is not None for text in one.get_texts()]


def test_panels_without_records_say_so_and_hold_no_line() -> None:
    empty = RecordStore(Path("nowhere"))
    for name, kind in FIGURES.items():
        figure = draw_figure(empty, name, kind.datasets[-1])
        titled = [axes for axes in figure.axes if axes.get_title()]
        assert texts(figure) == ["no records yet"] * len(titled)
        assert not any(axes.lines for axes in figure.axes)


def test_what_is_drawn_is_what_the_records_hold() -> None:
    store = committed()
    figure = draw_figure(store, "accuracy", "mnist")
    (axes,) = [axes for axes in figure.axes if axes.get_title() == "symmetric 0.8"]
    (run,) = plan("symmetric", "mnist", methods=["CE"], columns=["0.8"])
    records = store.seeds(run.configuration)
    (line,) = [line for line in axes.lines if line.get_label() == "CE"]
    expected = np.mean([record.curve["test_accuracy"] for record in records], axis=0)
    np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=float), expected)
    np.testing.assert_array_equal(np.asarray(line.get_xdata()), np.arange(1, 51))


def test_what_is_missing_is_named_in_its_panel_and_seeds_make_a_band(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    made = {("CE", "0.2"): [50.0], ("FL", "0.2"): [50.0], ("CE", "0.8"): [50.0, 70.0]}
    for (method, column), accuracies in made.items():
        runs = plan("symmetric", "mnist", methods=[method], columns=[column], seeds=[1, 2])
        for run, accuracy in zip(runs, accuracies, strict=False):
            store.add(made_record(run.configuration, [accuracy] * 50))
    figure = draw_figure(store, "accuracy", "mnist")
    shown = legend(figure)
    assert {"CE", "FL", "GCE"} <= set(shown)
    assert texts(figure).count("no records yet") == 7
    said = [text.replace("\n", " ") for text in texts(figure) if text != "no records yet"]
    assert said == [
        f"without {names}GCE, SCE, NLNL, APL, CE+SR, FL+SR, GCE+SR" for names in ("", "FL, ")
    ]
    (axes,) = [axes for axes in figure.axes if axes.collections]
    assert set(np.asarray(axes.lines[0].get_ydata(), dtype=float)) == {60.0}
    (band,) = axes.collections
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == (50, 70)


def test_a_file_is_as_its_name_says_and_the_same_every_time(tmp_path: Path) -> None:
    for folder in "ab":
        figure = draw_figure(committed(), "sparse", "mnist")
        for suffix in SUFFIXES:
            save_figure(figure, tmp_path / folder / f"figure{suffix}")
    for suffix in SUFFIXES:
        first, second = ((tmp_path / f / f"figure{suffix}").read_bytes() for f in "ab")
        assert first == second
    with Image.open(tmp_path / "a" / "figure.png") as image:
        assert image.width > 1.5 * image.height
        assert image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
    svg = (tmp_path / "a" / "figure.svg").read_text()
    assert re.search(r"<svg [^>]*viewBox", svg)
    assert not re.search(r"<(script|image)\b", svg)


def test_only_the_panels_and_the_lines_that_are_asked_for_are_drawn(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    mine = ["ce", "gce(q=0.5)", "gce(q=0.5)+sr"]
    for run in plan("symmetric", "mnist", methods=mine, columns=["0.8"]):
        store.add(made_record(run.configuration, 60.0))
    figure = draw_figure(store, "accuracy", "mnist", methods=mine, columns=["0.8"])
    assert [axes.get_title() for axes in figure.axes] == ["symmetric 0.8"]
    lines = {str(line.get_label()): line for line in figure.axes[0].lines}
    assert list(lines) == ["CE", "gce(q=0.5)", "gce(q=0.5)+sr"]
    assert lines["gce(q=0.5)"].get_color() == lines["gce(q=0.5)+sr"].get_color()
    assert lines["gce(q=0.5)"].get_color() != lines["CE"].get_color()
    both = draw_figure(store, "accuracy", "mnist", methods=["CE"], columns=["0.4"])
    assert [axes.get_title() for axes in both.axes] == ["symmetric 0.4", "asymmetric 0.4"]
    with pytest.raises(ValueError, match=r"column: expected one of 0\.2, 0\.4"):
        draw_figure(store, "memorisation", "mnist", columns=["0.0"])


def test_features_have_a_row_for_each_method_and_a_column_for_each_noise() -> None:
    points, labels = np.random.default_rng(0).random((30, 2)), np.arange(30) % 10
    made = (("CE", "none"), ("CE", "symmetric:0.8"), ("CE+SR", "symmetric:0.8"))
    embeddings = [Embedding(method, noise, 98.5, points, labels) for method, noise in made]
    figure = draw_embeddings(embeddings, title="Features", class_names=list("0123456789"))
    assert len(figure.axes) == 4
    assert [axes.get_title() for axes in figure.axes] == [
        *("no noise: 98.50%", "symmetric 0.8: 98.50%", "", "symmetric 0.8: 98.50%")
    ]
    assert [figure.axes[at].get_ylabel() for at in (0, 2)] == ["CE", "CE+SR"]
    assert texts(figure) == ["no run"]
    assert legend(figure) == list("0123456789")


def test_a_loss_is_called_as_it_would_be_written() -> None:
    for text in ("gce(q=0.5)+sr", "10*nce+mae+sr(p=0.01)", "ce", "normalized(gce(q=0.5))", "sce"):
        written = format_loss(parse_loss(text))
        (label,) = loss_labels([written])
        assert len(label) <= len(text)
        assert format_loss(parse_loss(label)) == written
    assert loss_labels(["Co-teaching", "CE+SR(tau=1)"]) == ["Co-teaching", "CE+SR(tau=1)"]
    # Losses of one's own that differ in their code alone keep its digits.
    both = ["mine@0a1b2c(a=1)", "mine@3f9c21(a=1)", "mine@3f9c21(a=2)"]
    assert loss_labels(both) == ["mine@0a1b2c(a=1)", "mine@3f9c21(a=1)", "mine(a=2)"]
