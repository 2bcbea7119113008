"""What is said of a folder that holds a run on other data."""

import json
import pickle
from pathlib import Path

import pytest

from labelproof.training.provenance import OtherDataError, note_data, refuse_other_data


def test_a_finished_run_says_what_it_is_of(tmp_path: Path) -> None:
    note_data(tmp_path, "27d1")
    values = {"configuration": {"data": "emb.npz"}, "noise_rate": 0, "curve": {}, "seconds": 1}
    text = json.dumps({"name": "run", "versions": {}, **values})
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(OtherDataError, match=r"it is of emb\.npz, whose labels, files or rows"):
        refuse_other_data(tmp_path, lambda: "0a5c")


@pytest.mark.parametrize("data", [None, "emb.npz"])
def test_it_is_the_same_in_another_process(data: str | None) -> None:
    error = OtherDataError(Path("run"), "do something", data)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert str(again) == str(error)
    assert again.data == data


def test_an_audit_is_not_called_a_run(tmp_path: Path) -> None:
    error = OtherDataError(tmp_path, data="pets.npz", kind="an audit")
    assert "holds an audit of other data: it is of pets.npz" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
