import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_records import RECORDS, committed, made_record

from labelproof.experiments.grids import plan
from labelproof.experiments.records import RecordStore, find_record_files
from labelproof.training.configuration import Configuration

RUN = Configuration("mnist", noise="symmetric:0.4")


def test_a_record_is_found_by_its_configuration_alone(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    path = store.add(made_record(RUN, 91.0))
    assert path.parent == tmp_path / "mnist"
    # The name of a file decides nothing, so records can be sorted as anyone likes.
    path.rename(path.with_name("moved.json"))
    found = RecordStore(tmp_path).find(RUN)
    assert found is not None
    assert found.final_accuracy == 91
    for change in ({"seed": 2}, {"epochs": 3}, {"loss": "mae"}, {"noise": "none"}):
        assert store.find(replace(RUN, **change)) is None


def test_records_are_found_at_any_depth_and_nothing_else_is(tmp_path: Path) -> None:
    record = made_record(RUN, 91.0)
    for name in (
        *(".cache/a.json", ".b.json", "embeddings/mnist.npz"),
        *("begun/fingerprint.json", "begun/checkpoint/state.json"),
        *("from/machine/kept/model.json", "from/machine/kept/metrics.jsonl"),
        "from/machine/kept/record.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(record.as_json() if name.endswith("record.json") else "{}")
    (tmp_path / "from" / "back").symlink_to(tmp_path)
    kept = tmp_path / "from" / "machine" / "kept" / "record.json"
    assert list(find_record_files(tmp_path)) == [kept]
    assert RecordStore(tmp_path).find(RUN) is not None
    assert list(RecordStore(tmp_path / "none")) == []


def test_copies_are_one_record_and_the_one_that_was_added_counts(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    for number, accuracy in ((2, 92.0), (1, 91.0)):
        (tmp_path / f"copy-{number}.json").write_text(made_record(RUN, accuracy).as_json())
    assert [record.final_accuracy for record in store] == [91]
    store.add(made_record(RUN, 95.0))
    assert [record.final_accuracy for record in store] == [95]
    # Another precision is another record, of which the widest counts.
    (tmp_path / "wide.json").write_text(made_record(RUN, 96.0, precision="float32").as_json())
    store = RecordStore(tmp_path)
    assert [record.final_accuracy for record in store] == [96, 95]
    assert [record.final_accuracy for record in store.seeds(RUN)] == [96]


def test_seeds_come_once_each_in_order_and_the_widest_precision_first(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    for seed, accuracy, precision in (
        (10, 10.0, "bf16"),
        (2, 2.0, "bf16"),
        (2, 3.0, "float32"),
        (1, 1.0, "fp16"),
    ):
        store.add(made_record(replace(RUN, seed=seed), accuracy, precision=precision))
    for asked in (RUN, replace(RUN, seed=7)):
        assert [record.final_accuracy for record in store.seeds(asked)] == [1, 3, 10]
    assert [r.final_accuracy for r in store.seeds(replace(RUN, precision="bf16"))] == [2, 10]
    assert store.find(replace(RUN, precision="float32")) is None
    assert len(list(store)) == 4


WHOLE = [90.0] * 50


def test_a_file_that_no_run_could_have_left_is_named(tmp_path: Path) -> None:
    path = RecordStore(tmp_path).add(made_record(RUN, 91.0))
    text = path.read_text()
    values = json.loads(text)
    changes = [
        ("test_accuracy", {"curve": {"test_accuracy": WHOLE[:30]}}),
        ("loss", {"curve": {"test_accuracy": WHOLE, "loss": [1.0]}}),
        ("test_accuracy", {"curve": {"test_accuracy": [*WHOLE[1:], math.nan]}}),
        ("test_accuracy", {"curve": {"test_accuracy": ["90"] * 50}}),
        ("test_accuracy", {"curve": {"test_accuracy": 90.0}}),
        ("curve:", {"curve": [90.0]}),
        ("noise_rate:", {"noise_rate": "0.4"}),
        ("newer labelproof .*format", {"format": 2}),
    ]
    damaged = [(message, json.dumps(values | change)) for message, change in changes]
    damaged += [
        ("mixup", text.replace('"average"', '"mixup"')),
        ("unknown loss 'cx'", text.replace('"ce"', '"cx"')),
        *(("not a record", each) for each in ("", "{}", "[]", '"text"', '{"name": 1', "[" * 10**5)),
    ]
    # One that is older than a setting has its default.
    del values["configuration"]["average"]
    path.write_text(json.dumps(values))
    assert RecordStore(tmp_path).find(RUN) is not None
    for message, content in damaged:
        path.write_text(content)
        with pytest.raises(ValueError, match=message) as refused:
            RecordStore(tmp_path).find(RUN)
        assert str(refused.value).startswith(f"{path}: ")
        assert "\n" not in str(refused.value)


def test_a_record_of_other_data_counts_for_no_table_and_comes_last(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    few, all_of_it = {"train": 20, "test": 12}, {"train": 60_000, "test": 10_000}
    store.add(made_record(RUN, 50.0, precision="float32", data=few))
    assert store.seeds(RUN) == []
    found = store.find(RUN)
    assert found is not None
    assert found.data == few
    store.add(made_record(RUN, 91.0, precision="bf16", data=all_of_it))
    for record in (store.find(RUN), *store.seeds(RUN)):
        assert record is not None
        assert record.final_accuracy == 91


def test_every_committed_record_is_a_cell_and_its_file_is_named_after_it() -> None:
    """A change of the settings would leave records behind that no table finds."""
    known = {
        run.configuration
        for table in ("symmetric", "asymmetric")
        for dataset in ("mnist", "cifar10", "cifar100")
        for run in plan(table, dataset)
    }
    store = committed()
    files = {path.stem for path in find_record_files(RECORDS)}
    assert len(files) >= 76
    assert {record.name for record in store} == files
    cells = 0
    for record in store:
        configuration = Configuration.from_values(record.configuration)
        assert configuration.name == record.name
        cells += replace(configuration, seed=1, precision="auto") in known
        assert {len(values) for values in record.curve.values()} == {configuration.epochs}
    assert cells >= 76
