import json
from pathlib import Path

import pytest
from small_runs import CPU, StopAfter, load_small, outcome

from labelproof.fitting.attempts import Attempts, read_attempts, resume_attempts, train_robustly
from labelproof.training.configuration import Configuration
from labelproof.training.execution import StopRequest
from labelproof.training.provenance import OtherDataError
from labelproof.training.record import read_record
from labelproof.training.run_folder import ATTEMPTS, SEARCH
from labelproof.training.runner import Job
from labelproof.tuning.collapse import back_off

# What one of the settings for MNIST does to the digits: everything becomes one class.
TOO_STRONG = "ce+sr(tau=0.1,p=0.1,lambda0=60,rho=1,r=1,normalize=false)"
ASKED = Configuration(
    *("digits", "none", TOO_STRONG),
    network="mlp(hidden=16,depth=1)",
    epochs=12,
    batch_size=8,
    validation=0.25,
    precision="float32",
)


def fit(folder: Path, *, weaken: bool = True, stop: StopRequest | None = None) -> Attempts:
    """As the command does it: what the folder tells of earlier attempts is gone on with."""
    attempts = read_attempts(folder) or Attempts(ASKED.as_values(), ASKED.loss)
    events = train_robustly(
        [Job(ASKED, folder)],
        CPU,
        load=load_small,
        attempts=attempts,
        note=lambda: attempts.write(folder),
        weaken=weaken,
        stop=stop,
    )
    attempts.said = [str(event.value) for event in events if event.kind == "notice"]
    return attempts


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Attempts]:
    """A run whose loss collapses, trained without a stop."""
    folder = tmp_path_factory.mktemp("attempts") / "whole"
    return folder, fit(folder)


def test_a_collapse_is_said_and_the_penalty_weakened_until_it_learns(whole) -> None:
    folder, attempts = whole
    said = attempts.said
    assert any("collapsed" in line for line in said)
    assert any("weaker penalty" in line for line in said)
    assert attempts.given_up[0]["loss"] == TOO_STRONG
    record = read_record(folder)
    assert record.configuration["loss"] == attempts.loss
    assert record.curve["predicted_classes"][-1] > 3
    kept = read_attempts(folder)
    assert kept == Attempts(attempts.asked, attempts.loss, attempts.given_up)


def test_stopped_again_and_again_it_comes_to_the_same(whole, tmp_path: Path) -> None:
    for _ in range(60):
        fit(tmp_path / "cut", stop=StopAfter(97))
        if read_record(tmp_path / "cut") is not None:
            break
    kept = read_attempts(tmp_path / "cut")
    assert kept.given_up == whole[1].given_up
    assert outcome(tmp_path / "cut") == outcome(whole[0])


def test_killed_after_its_note_it_goes_on_with_the_weaker_loss(tmp_path: Path) -> None:
    fit(tmp_path, stop=StopAfter(90))
    assert read_record(tmp_path) is None
    (tmp_path / SEARCH).write_text("{}")
    weaker = "ce+sr(tau=0.1,p=0.1,lambda0=1,rho=1,r=1,normalize=false)"
    given_up = [{"loss": TOO_STRONG, "reason": "it collapsed"}]
    Attempts(ASKED.as_values(), weaker, given_up).write(tmp_path)
    attempts = fit(tmp_path)
    record = read_record(tmp_path)
    assert record.configuration["loss"] == attempts.loss == weaker
    assert (tmp_path / SEARCH).exists()


def test_a_loss_that_was_asked_for_is_kept_and_the_collapse_said_once(tmp_path: Path) -> None:
    attempts = fit(tmp_path / "run", weaken=False)
    assert attempts.given_up == []
    (said,) = [line for line in attempts.said if "collapsed" in line]
    assert said.endswith(f"; a weaker penalty may help: {back_off(TOO_STRONG)}")
    record = read_record(tmp_path / "run")
    assert len(record.curve["epoch"]) == 12


def test_what_a_search_chose_is_kept_and_damaged_notes_are_said_to_be(tmp_path: Path) -> None:
    assert read_attempts(tmp_path) is None
    Attempts(ASKED.as_values(), "gce(q=0.7)", l1=1e-4).write(tmp_path)
    run = resume_attempts(tmp_path, ASKED.as_values(), "ce").configure(ASKED)
    assert (run.loss, run.l1, run.weight_decay) == ("gce(q=0.7)", 1e-4, 0.0)
    (tmp_path / ATTEMPTS).write_text(json.dumps({"asked": {}}))
    with pytest.raises(ValueError, match="--fresh"):
        read_attempts(tmp_path)


def test_other_data_are_refused_with_the_name_of_those_there(tmp_path: Path) -> None:
    Attempts({"data": "emb.npz", "fingerprint": "27d1"}, "ce").write(tmp_path)
    with pytest.raises(OtherDataError, match=r"other data: it is of emb\.npz, whose labels, "):
        resume_attempts(tmp_path, {"data": "emb.csv", "fingerprint": "0a5c"}, "ce")
    Attempts({"fingerprint": "27d1"}, "ce").write(tmp_path)
    with pytest.raises(OtherDataError, match="other data: labels, "):
        resume_attempts(tmp_path, {"data": "emb.csv", "fingerprint": "0a5c"}, "ce")


def test_the_same_data_and_labels_at_another_place_are_the_same(tmp_path: Path) -> None:
    asked = {"data": "t.csv", "labels": "reviewed.csv", "seed": 1, "fingerprint": "27d1"}
    Attempts(asked, "ce").write(tmp_path)
    moved = {**asked, "data": "/moved/t.csv", "labels": "/moved/reviewed.csv"}
    assert resume_attempts(tmp_path, moved, "ce").asked == asked
    with pytest.raises(ValueError, match=r"holds a run with other settings \(seed 1\)"):
        resume_attempts(tmp_path, {**moved, "seed": 2}, "ce")
    # With labels of a file or without is more than a place, and so is a dataset's name.
    for other in ({"labels": None}, {"data": "digits"}):
        said = f"holds an audit with other settings .{next(iter(other))}"
        with pytest.raises(ValueError, match=said):
            resume_attempts(tmp_path, moved | other, "ce", kind="an audit")


def test_a_second_folder_of_images_with_equal_names_is_not_the_first_one(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    asked = {"data": str(first), "fingerprint": "27d1"}
    Attempts(asked, "ce").write(tmp_path)
    second.mkdir()
    with pytest.raises(ValueError, match=r"other settings \(data"):
        resume_attempts(tmp_path, asked | {"data": str(second)}, "ce")
    assert resume_attempts(tmp_path, asked | {"data": f"{first}/"}, "ce").asked == asked
    first.rmdir()  # it was moved
    assert resume_attempts(tmp_path, asked | {"data": str(second)}, "ce").asked == asked
