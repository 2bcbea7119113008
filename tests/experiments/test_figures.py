"""What figures show: curves of records, and embeddings."""

from pathlib import Path

import numpy as np
import pytest
from made_records import committed, made_record
from trained import refusal, succeed

from labelproof.experiments import figures
from labelproof.experiments.figures import Embedding, read_embeddings, write_embeddings
from labelproof.experiments.grids import GRIDS, choose_rows, plan
from labelproof.experiments.records import RecordStore


def test_every_method_is_in_every_panel() -> None:
    for dataset in ("mnist", "cifar10", "cifar100"):
        panels = figures.accuracy_panels(committed(), dataset)
        assert len(panels) == 9
        for panel in panels:
            assert set(panel.lines) == set(choose_rows("symmetric", dataset))
            assert panel.missing == [name for name, seeds in panel.lines.items() if not seeds]


def test_the_sparse_rate_is_a_percentage_of_the_record() -> None:
    store = committed()
    (run,) = plan("symmetric", "mnist", methods=["CE+SR"], columns=["0.8"])
    record = store.seeds(run.configuration)[0]
    sparse, accuracy = figures.sparse_panels(store, "mnist")
    assert sparse.lines["CE+SR"][0][-1] == pytest.approx(100 * record.curve["sparse_rate"][-1])
    assert list(accuracy.lines)[:3] == ["CE", "FL", "GCE"]


def test_memorising_is_what_cross_entropy_does_and_the_regulariser_prevents() -> None:
    panels = {panel.title: panel for panel in figures.memorisation_panels(committed(), "mnist")}
    assert len(panels) == 8
    ends = {
        method: [seeds[0][-1] for seeds in panels[f"{method}, symmetric 0.8"].lines.values()]
        for method in ("CE", "CE+SR")
    }
    assert [*panels["CE, symmetric 0.8"].lines] == [*figures.FITTED.values()]
    most = {method: [value > 95 for value in values] for method, values in ends.items()}
    least = {method: [value < 5 for value in values] for method, values in ends.items()}
    assert most == {"CE": [True, True, False], "CE+SR": [True, False, True]}
    assert least == {"CE": [False, False, True], "CE+SR": [False, True, False]}


def test_a_sweep_has_a_line_for_each_value(tmp_path: Path) -> None:
    for sweep, symbol in figures.SWEEPS.items():
        store = RecordStore(tmp_path / sweep)
        method, column = choose_rows(sweep, "cifar10")[0], GRIDS[sweep].columns[1]
        (run,) = plan(sweep, "cifar10", methods=[method], columns=[column])
        store.add(made_record(run.configuration, 70.0))
        first, *others = figures.sweep_panels(sweep, store, "cifar10")
        assert len(first.lines) == len(GRIDS[sweep].columns)
        assert [name for name, seeds in first.lines.items() if seeds] == [f"{symbol} = {column}"]
        assert all(len(panel.missing) == len(panel.lines) for panel in others)


def test_embeddings_are_kept_and_drawn_without_weights(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, 30)
    made = [
        Embedding(method, noise, 90.0 + index, generator.normal(size=(30, 2)) * 40, labels)
        for index, (method, noise) in enumerate(
            [
                *(("CE+SR", "symmetric:0.2"), ("CE", "symmetric:0.8"), ("CE", "symmetric:0.2")),
                *(("CE", "none"), ("CE", "asymmetric:0.4")),
            ]
        )
    ]
    file = tmp_path / "mnist.npz"
    write_embeddings(file, made)
    found = read_embeddings(file)
    known = {(each.method, each.noise, each.accuracy): each for each in made}
    for after in found:
        before = known.pop((after.method, after.noise, after.accuracy))
        assert np.array_equal(after.labels, labels)
        centred = before.points - before.points.mean(axis=0)
        assert np.allclose(after.points, centred / np.abs(centred).max(), atol=2e-3)
    assert not known
    chosen = read_embeddings(file, "symmetric")
    assert [(each.method, each.noise) for each in chosen] == [
        *(("CE", "none"), ("CE", "symmetric:0.2"), ("CE", "symmetric:0.8")),
        ("CE+SR", "symmetric:0.2"),
    ]
    draw = ("figure", "tsne", "--embeddings", file, "--output", tmp_path / "views.png")
    succeed(*draw, "--noise", "symmetric")
    assert (tmp_path / "views.png").stat().st_size > 10_000
    assert "no embeddings with pair noise" in refusal(*draw, "--noise", "pair")
    np.savez(tmp_path / "other.npz", points=np.zeros(3))
    with pytest.raises(ValueError, match="not a file of embeddings"):
        read_embeddings(tmp_path / "other.npz")
