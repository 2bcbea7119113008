from pathlib import Path

import pytest
from made_records import committed, made_record

from labelproof.experiments.curves import (
    FITTED,
    SWEEPS,
    accuracy_panels,
    memorisation_panels,
    sparse_panels,
    sweep_panels,
)
from labelproof.experiments.grids import GRIDS, plan
from labelproof.experiments.records import RecordStore


def test_every_method_is_in_every_panel_and_without_records_it_is_empty() -> None:
    for dataset in ("mnist", "cifar10", "cifar100"):
        panels = accuracy_panels(committed(), dataset)
        assert len(panels) == 9
        for panel in panels:
            assert {line.name for line in panel.lines} == set(GRIDS["symmetric"].rows(dataset))
            assert set(panel.missing) == {line.name for line in panel.lines if not line.seeds}
    nothing = accuracy_panels(RecordStore(Path("nowhere")), "mnist")
    assert all(len(panel.missing) == 9 for panel in nothing)


def test_a_line_is_the_curve_of_the_record() -> None:
    store = committed()
    (run,) = plan("symmetric", "mnist", methods=["CE+SR"], columns=["0.8"])
    record = store.seeds(run.configuration)[0]
    panel = accuracy_panels(store, "mnist")[4]
    assert (panel.title, panel.epochs) == ("symmetric 0.8", 50)
    (line,) = [line for line in panel.lines if line.name == "CE+SR"]
    assert line.seeds[0] == record.curve["test_accuracy"]
    sparse, accuracy = sparse_panels(store, "mnist")
    (rate,) = [line for line in sparse.lines if line.name == "CE+SR"]
    assert rate.seeds[0][-1] == pytest.approx(100 * record.curve["sparse_rate"][-1])
    assert [line.name for line in accuracy.lines][:3] == ["CE", "FL", "GCE"]


def test_memorising_is_what_cross_entropy_does_and_the_regulariser_prevents() -> None:
    panels = {panel.title: panel for panel in memorisation_panels(committed(), "mnist")}
    assert len(panels) == 8
    ends = {
        method: [line.seeds[0][-1] for line in panels[f"{method}, symmetric 0.8"].lines]
        for method in ("CE", "CE+SR")
    }
    assert [line.name for line in panels["CE, symmetric 0.8"].lines] == list(FITTED.values())
    most = {method: [value > 95 for value in values] for method, values in ends.items()}
    least = {method: [value < 5 for value in values] for method, values in ends.items()}
    assert most == {"CE": [True, True, False], "CE+SR": [True, False, True]}
    assert least == {"CE": [False, False, True], "CE+SR": [False, True, False]}


def test_a_sweep_has_a_line_for_each_value(tmp_path: Path) -> None:
    for sweep, symbol in SWEEPS.items():
        store = RecordStore(tmp_path / sweep)
        method, column = GRIDS[sweep].rows("cifar10")[0], GRIDS[sweep].columns[1]
        (run,) = plan(sweep, "cifar10", methods=[method], columns=[column])
        store.add(made_record(run.configuration, 70.0))
        first, *others = sweep_panels(sweep, store)
        assert len(first.lines) == len(GRIDS[sweep].columns)
        assert [line.name for line in first.lines if line.seeds] == [f"{symbol} = {column}"]
        assert all(len(panel.missing) == len(panel.lines) for panel in others)
