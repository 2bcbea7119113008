"""SIGKILL at any file operation of a run: the same call ends with the same bytes."""

import os
from pathlib import Path

import pytest
from killed_runs import lost


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_a_file_operation_no_run_is_lost(tmp_path: Path) -> None:
    tries, bad = lost(tmp_path, step=6)  # `make fuzz` tries each of them
    assert tries > 4
    assert bad == []
