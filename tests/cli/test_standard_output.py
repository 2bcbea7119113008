"""What becomes of a command whose standard output takes nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes are another thing there")

# A command that prints as others do, in place of the program's own, which load torch.
STAND_IN = """
import sys, types
import typer
from rich.console import Console
import labelproof.cli.commands as commands
from labelproof.cli.main import run

def command():
    for number in range(100):
        typer.echo("a line")
        Console().print("and another of", number)
    Console(stderr=True).print("all is done")

sys.modules["labelproof.cli.console"] = types.SimpleNamespace(
    is_mistake=lambda error: isinstance(error, OSError), for_flags=lambda text, **_: text
)
commands.load_command = lambda name: None
commands.app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
commands.app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(
    command
)
run()
"""
LOST = "warning: stdout: Broken pipe; continuing without it\n"


def left_alone(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that prints to a pipe whose reader has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, "-c", STAND_IN, *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=300,
        )
    finally:
        os.close(writer)


def test_a_training_outlives_who_reads_its_lines() -> None:
    done = left_alone("fit", "photos")
    assert (done.returncode, done.stderr) == (0, f"{LOST}all is done\n")
    command = [sys.executable, "-c", STAND_IN, "fit", "photos"]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "all is done\n")


def test_a_result_that_no_one_reads_ends_the_command() -> None:
    for words in (("predict", "run"), ("fit", "--dry-run")):
        done = left_alone(*words)
        assert (done.returncode, done.stderr) == (141, "")


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
from labelproof.cli.main import standard_output
try:
    with standard_output(goes_on=sys.argv[1] == "goes on"):
        print("more than there is room for")
except OSError as error:
    sys.exit(str(error))
"""


def test_a_full_disk_under_standard_output_is_said_to_be_that(tmp_path: Path) -> None:
    for goes_on, code, told in (
        ("goes on", 0, "warning: stdout: File too large; continuing without it\n"),
        ("ends", 1, "[Errno 27] File too large\n"),
    ):
        with (tmp_path / "log").open("w") as log:
            done = subprocess.run(
                [sys.executable, "-c", FULL, goes_on],
                stdout=log,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=300,
            )
        assert (done.returncode, done.stderr) == (code, told)
