"""The tutorial of the audit, from drawn pictures to a network, by the commands that it shows.

They are run shortened, which tells that they work and find much of what was planted.
"""

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from trained import labelproof_to_its_end

from labelproof.audit.folder import REVIEW, Audit
from labelproof.review.decisions import Decisions, Review

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guide" / "audit.md"
SHORT = {
    "audit": "--network cnn8(width=4) --augmentation resized-crop:24,flip --epochs 18 --folds 2",
    "fit": "--network cnn4(width=4) --augmentation resized-crop:24,flip --epochs 1 --no-audit",
}
"""What a flag says last holds."""


def shown_commands() -> list[str]:
    """The commands of the sitting, in order: those before the first section that is not a step."""
    sitting = PAGE.read_text(encoding="utf-8").partition("## More than a folder")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", sitting, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


def run(command: str) -> None:
    """Run a command of the page."""
    program, *words = shlex.split(command, comments=True)
    if program == "python":
        done = subprocess.run(
            [sys.executable, str(ROOT / words[0]), *words[1:]],
            capture_output=True,
            text=True,
            check=False,
        )
    else:
        assert program == "labelproof"
        done = labelproof_to_its_end(*words, *SHORT.get(words[0], "").split(), columns=100)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the reader works in, after the audit."""
    folder = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in shown_commands()[:2]:
            run(command)
    return folder


@pytest.fixture
def sit_down(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)


def read_table(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def planted() -> dict[str, str]:
    """Where the pictures belong that are in the wrong folder."""
    return {row["sample"]: row["label"] for row in read_table("shapes-planted.csv")}


@pytest.mark.slow
@pytest.mark.usefixtures("sit_down")
def test_the_audit_finds_much_of_what_was_planted() -> None:
    wrong = planted()
    assert len(wrong) == 32
    audit = Audit.read(Path("shapes-audit"))
    assert len(audit.samples) == 400
    suspects = [audit.samples[place] for place in map(int, audit.findings.suspects)]
    hits = sum(sample in wrong for sample in suspects)
    # Suspects are wrong far more often than any label is, 8 in 100.
    assert hits / len(suspects) > 0.16
    assert hits >= 0.3 * len(wrong)
    written = {path.name for path in Path("shapes-audit").iterdir()}
    assert written >= {"audit.json", "report.html", "samples.npz", "settings.json", "suspects.csv"}


@pytest.mark.slow
@pytest.mark.usefixtures("sit_down")
def test_from_the_review_to_a_network() -> None:
    commands = shown_commands()[2:]
    assert commands[0].split()[:2] == ["labelproof", "review"]
    decide()
    for command in commands[1:]:
        run(command)
    truth = planted()
    for row in read_table("reviewed.csv"):
        right = truth.get(row["sample"], row["given"])
        assert row["label"] == (right if row["decision"] else row["given"])


def decide() -> None:
    """Decide about all suspects by the list of the planted, as the keys of the page do."""
    truth, audit = planted(), Audit.read(Path("shapes-audit"))
    names = audit.class_names
    with Decisions(Path("shapes-audit") / REVIEW) as decisions:
        sitting = Review(audit, decisions)
        for place in map(int, audit.findings.suspects):
            true = truth.get(audit.samples[place], names[audit.findings.given[place]])
            sitting.decide(place, "another", names.index(true))


def test_the_pictures_are_small_and_shown() -> None:
    for picture in (ROOT / "docs" / "pictures").glob("audit-*.png"):
        assert picture.stat().st_size < 150_000
        with Image.open(picture) as seen:
            assert seen.width <= 1000
        assert f"../pictures/{picture.name}" in PAGE.read_text(encoding="utf-8")
