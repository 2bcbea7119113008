from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import small, small_digits

from labelproof.training.provenance import (
    Description,
    describe,
    read_description,
    write_description,
)

numbers = st.floats(allow_nan=False, allow_infinity=False)
descriptions = st.builds(
    Description,
    network=st.text(max_size=10),
    input_shape=st.tuples(st.integers(1, 4), st.integers(1, 999), st.integers(1, 999)),
    class_names=st.lists(st.text(max_size=5), max_size=4).map(tuple),
    mean=st.lists(numbers, max_size=3).map(tuple),
    std=st.lists(numbers, max_size=3).map(tuple),
    crop=st.integers(0, 500),
)


@settings(
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(descriptions)
def test_what_is_written_is_read(tmp_path: Path, description: Description) -> None:
    write_description(tmp_path, description)
    assert read_description(tmp_path) == description


def test_a_description_says_what_the_network_is_fed() -> None:
    dataset = small_digits()
    plain = describe(small(), dataset)
    assert plain.network == small().network
    assert plain.input_shape == (1, 8, 8)
    assert plain.class_names == dataset.class_names
    assert (plain.mean, plain.std) == (dataset.mean, dataset.std)
    assert plain.crop == 0
    cropped = describe(small(augmentation="resized-crop:6"), dataset)
    assert cropped == replace(plain, input_shape=(1, 6, 6), crop=6)


def test_a_folder_that_is_no_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"is not the folder of a run: it has no model\.json"
    ):
        read_description(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nowhere: there is no such folder; 'labelproof f"):
        read_description(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "3",
        "{}",
        '{"network": "cnn4"}',
        '{"unknown": 1, "input_shape": []}',
        "\udcff",
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "model.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"model.json: not a description of a network"):
        read_description(tmp_path)
