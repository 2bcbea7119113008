"""Runs that the tests of several commands look at, trained once."""

from pathlib import Path

import pytest
from trained import train_digits


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on the digits, which no test changes."""
    folder = tmp_path_factory.mktemp("runs") / "digits"
    result = train_digits(folder, epochs=2)
    assert result.exit_code == 0, result.output
    return folder
