import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_images import write_images
from made_records import committed, made_record

import labelproof
from labelproof.data.notices import DataWarning
from labelproof.experiments.comparison import compare_runs, find_unfinished, read_records
from labelproof.report.tables import COMPARISONS
from labelproof.training.configuration import Configuration
from labelproof.training.files import write_text
from labelproof.training.record import RunRecord

DIGITS = Configuration("digits", noise="symmetric:0.4", epochs=2)


def record(accuracy: float, **changes: object) -> RunRecord:
    changed = replace(DIGITS, **changes)  # type: ignore[arg-type]
    return made_record(changed, accuracy, wrong_fitted=[0.1, 0.2])


RUNS = [
    *(record(80.0 + seed, loss="ce", seed=seed) for seed in (1, 2, 3)),
    *(record(85.0 + 2 * seed, loss="gce(q=0.5)", seed=seed) for seed in (2, 3, 4)),
    record(95.0, loss="ce", noise="none"),
]


def test_seeds_make_a_row_and_common_seeds_a_difference() -> None:
    best, plain, clean = compare_runs(RUNS)
    assert best.settings == {"noise": "symmetric:0.4", "loss": "gce(q=0.5)"}
    assert best.accuracies == {2: 89.0, 3: 91.0, 4: 93.0}
    assert (best.mean, best.deviation, plain.mean) == (91.0, 2.0, 82.0)
    assert clean.settings == {"noise": "none", "loss": "ce"}
    assert clean.deviation is best.difference is clean.difference is None
    assert plain.difference == (pytest.approx(-7.5), pytest.approx(math.sqrt(0.5)))


def test_other_data_of_the_same_name_are_other_runs() -> None:
    def made(accuracy: float, mark: str, seed: int, **changes: object) -> RunRecord:
        found = record(accuracy, noise="none", seed=seed, **changes)
        return replace(found, data={"fingerprint": mark})

    runs = [made(70.0, "before", 1), made(80.0, "after", 1), made(82.0, "after", 2)]
    best, worse = compare_runs(runs)
    assert best.settings == {"data version": 2, "loss": "ce"}
    assert best.accuracies == {1: 80.0, 2: 82.0}
    # By the same test labels they can be compared.
    assert worse.difference == (-10.0, None)
    held = [replace(run, curve={"validation_accuracy": run.curve["test_accuracy"]}) for run in runs]
    assert [each.difference for each in compare_runs(held)] == [None, None]
    blends = compare_runs([made(70.0, "before", 1, network="blend"), made(80.0, "before", 1)])
    assert {each.settings["loss"] for each in blends} == {"ce", "blend"}


def test_only_accuracies_on_the_same_held_out_labels_are_compared() -> None:
    def made(accuracy: float, **changes: object) -> RunRecord:
        found = record(accuracy, noise="none", **changes)
        return replace(found, curve={"validation_accuracy": found.curve["test_accuracy"]})

    runs = [made(90.0, validation=0.2), made(85.0, validation=0.2, loss="rce")]
    runs += [made(95.0, validation=0.1), made(99.0, network="blend", epochs=1)]
    differences = [each.difference for each in compare_runs(runs)]
    assert differences == [None, (-5.0, None), None, None]
    blend = compare_runs(runs[::3])[1]
    assert {*blend.settings} == {"loss", "network"}  # a blend has no epochs of its own
    on_test = [record(80.0), record(85.0, network="blend")]
    assert compare_runs(on_test)[1].difference == (-5.0, None)


def test_without_a_test_part_it_is_the_held_out_labels_and_without_those_nothing() -> None:
    unmeasured = replace(record(0.0, seed=5), curve={"train_loss": [1.0]})
    with pytest.warns(DataWarning, match="1 run left out, neither tested nor validated"):
        assert len(compare_runs([*RUNS, unmeasured])) == 3
    with pytest.raises(ValueError, match=r"neither tested nor validated.*validation 0\.1"):
        compare_runs([unmeasured])
    held = record(80.0)
    held.curve["validation_accuracy"] = held.curve.pop("test_accuracy")
    (compared,) = compare_runs([held])
    assert compared.measured_on == "validation"
    assert "which may be wrong themselves" in COMPARISONS["markdown"]([compared])
    both = compare_runs([held, record(90.0)])
    assert "80.00 (1), validation" in COMPARISONS["markdown"](both)


def test_records_are_read_from_runs_and_from_folders_of_records(tmp_path: Path) -> None:
    for number, each in enumerate(RUNS[:2]):
        write_text(tmp_path / "runs" / str(number) / "record.json", each.as_json())
        write_text(tmp_path / "runs" / str(number) / "fingerprint.json", "{}")
    write_text(tmp_path / "records" / "digits" / "a.json", RUNS[2].as_json())
    write_text(tmp_path / "runs" / "begun" / "fingerprint.json", "{}")
    assert len(read_records(tmp_path)) == 3
    assert len(read_records(tmp_path / "runs" / "0", tmp_path / "runs")) == 2
    assert find_unfinished(tmp_path) == [tmp_path / "runs" / "begun"]
    for number, text in enumerate(("[1, 2]", "3", "{}", '{"a": 1}', "oops")):
        write_text(tmp_path / f"{number}.json", text)
    assert len(read_records(tmp_path)) == 3
    write_text(tmp_path / "runs" / "0" / "record.json", "[1, 2]")
    with pytest.raises(ValueError, match=r"0/record\.json"):
        read_records(tmp_path / "runs")
    with pytest.raises(FileNotFoundError, match="gone: there is no such folder"):
        read_records(tmp_path / "gone")


def test_every_format_has_every_group() -> None:
    compared = compare_runs(RUNS)
    csv = COMPARISONS["csv"](compared).splitlines()
    assert csv[0].startswith("noise,loss,measured_on,mean,std,n,difference,")
    assert csv[2] == "symmetric:0.4,ce,test,82,1,3,-7.5,0.707107,0.4"
    assert csv[3] == "none,ce,test,95,,1,,,0.4"
    assert r"82.00 $\pm$ 1.00 (3) & -7.50 $\pm$ 0.71 & 40.0\%" in COMPARISONS["latex"](compared)
    assert "| 82.00 ± 1.00 (3)  | -7.50 ± 0.71 |" in COMPARISONS["markdown"](compared)


def test_the_share_of_wrong_labels_is_unknown_without_the_truth() -> None:
    own = replace(RUNS[0], curve={"test_accuracy": [10.0, 80.0]})
    (compared,) = compare_runs([own])
    assert compared.noise_rate is None
    assert COMPARISONS["markdown"]([compared]).endswith("| unknown      |")
    assert COMPARISONS["csv"]([compared]).endswith("test,80,,1,,,")
    assert all(each.wrong_labels == each.noise_rate for each in committed())


def test_one_folder_of_images_is_one_version_of_data_whatever_the_crop(tmp_path: Path) -> None:
    write_images(tmp_path / "photos", [f"{kind}/{n}.png" for kind in "ab" for n in range(20)])
    for side in (8, 12):
        labelproof.fit(
            tmp_path / "photos", network="cnn4(width=2,hidden=4)", loss="ce", epochs=1,
            augmentation=f"resized-crop:{side}", audit=False, output=tmp_path / f"run{side}",
        )  # fmt: skip
    compared = compare_runs(read_records(tmp_path))
    assert len(compared) == 2
    assert not any("data version" in each.settings for each in compared)
