"""The program as a person runs it, and a small run to use."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from labelproof.cli.commands import app
from labelproof.cli.main import run

ENVIRONMENT = ("RANK", "WORLD_SIZE", "LABELPROOF_DATA", "LABELPROOF_LOSSES")
"""What the program finds there is not the tests', and what it leaves there ends with it."""


def labelproof(*arguments: str | Path) -> Result:
    """Run the program in this process, with standard output and errors apart."""
    return CliRunner().invoke(
        app,
        [str(argument) for argument in arguments],
        env={"COLUMNS": "200"} | dict.fromkeys(ENVIRONMENT),
    )


def succeed(*arguments: str | Path) -> Result:
    """Run a command that has to end well."""
    result = labelproof(*arguments)
    assert result.exit_code == 0, result.output or result.exception
    return result


def refusal(*arguments: str | Path) -> str:
    """Run a command that has to be refused, and return its one line."""
    result = labelproof(*arguments)
    assert isinstance(result.exception, (ValueError, OSError)), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def things(rows: int = 60, *, kinds: int = 3, label: str = "label", seed: int = 0) -> pd.DataFrame:
    """A table of things whose kind their width and height tell."""
    kind = np.arange(rows) % kinds
    sizes = np.random.default_rng(seed).normal(np.stack([3 * kind, -2 * kind], axis=1), 0.3)
    table = pd.DataFrame(sizes.round(4), columns=["width", "height"])
    table["colour"] = np.array(["red", "blue"])[kind % 2]
    table[label] = [f"kind {each}" for each in kind]
    return table


def write_things(path: Path, rows: int = 60, **more: Any) -> Path:
    """Write a table of things."""
    path.parent.mkdir(parents=True, exist_ok=True)
    things(rows, **more).to_csv(path, index=False)
    return path


def labelproof_to_its_end(
    *arguments: str | Path, columns: int = 160
) -> subprocess.CompletedProcess[str]:
    """Run the program in this process with its own way of ending: exit code and error line.

    A process of its own would load torch again, and is needed only where one is signalled, killed,
    or looked at from outside.
    """
    words = [str(argument) for argument in arguments]
    with (
        redirect_stdout(io.StringIO()) as output,
        redirect_stderr(io.StringIO()) as errors,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["labelproof", *words])
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("LABELPROOF_LOSSES", "")
        with pytest.raises(SystemExit) as end:
            run()
    code = end.value.code or 0
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def refused_in_one_line(*arguments: str | Path) -> str:
    """Run the program to its end, which has to be a refusal, and return its line."""
    ended = labelproof_to_its_end(*arguments)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "Finished before" not in ended.stdout
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    return ended.stderr


def train_digits(folder: Path, *arguments: str | Path, epochs: int = 2) -> Result:
    """Train on digits into a folder."""
    return labelproof(
        *("train", "--data", "digits", "--device", "cpu", "--epochs", str(epochs)),
        *("--output", folder, *arguments),
    )
