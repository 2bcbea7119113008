"""A folder's run goes on with the data that it was begun on, and with no others."""

from pathlib import Path

import pytest
from small_runs import StopAfter, kinds, small, small_digits, train

from labelproof.training import Configuration, Examples, Job, choose_examples
from labelproof.training.provenance import OtherDataError


def fewer(configuration: Configuration) -> Examples:
    """Two steps an epoch, where all of them make seven."""
    return choose_examples(configuration, small_digits(train=40))


def test_whoever_trains_in_a_folder_is_refused_other_data(tmp_path: Path) -> None:
    job = Job(small(), tmp_path)
    train(job, stop=StopAfter(2))
    with pytest.raises(OtherDataError, match="holds a run on other data"):
        train(job, load=fewer)
    assert kinds(train(job))[-1] == "finished"


def test_without_a_note_it_shows_where_the_run_stands(tmp_path: Path) -> None:
    """As a version left it that noted no data: it stood at a step that other data have not."""
    job, note = Job(small(), tmp_path), tmp_path / "fingerprint.json"
    train(job, stop=StopAfter(5))
    note.unlink()
    with pytest.raises(OtherDataError):
        train(job, load=fewer)
    # Those that it was begun on are taken again, and noted from now on.
    assert not note.exists()
    assert kinds(train(job))[-1] == "finished"
    assert note.exists()


def test_a_record_says_what_was_trained_on_with_a_folder_or_without(tmp_path: Path) -> None:
    with_folder, without = (
        train(job)[-1].value.data for job in (Job(small(), tmp_path), Job(small()))
    )
    assert with_folder == without
    assert (without["train"], without["test"]) == (200, 100)
    assert train(Job(small()), load=fewer)[-1].value.data["fingerprint"] != without["fingerprint"]
