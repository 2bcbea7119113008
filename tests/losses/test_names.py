"""Losses from a file of the user's."""

import os
from pathlib import Path

import pytest
import torch
from made_losses import HEAD, TABLE, TAYLOR

from labelproof import format_loss, parse_loss
from labelproof.losses import LossSyntaxError
from labelproof.losses.names import LOSS_FILES, known_losses, load_losses


def write(path: Path, *parts: str) -> Path:
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


@pytest.fixture
def taylor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write(tmp_path / "mine.py", HEAD, TAYLOR, TABLE)
    monkeypatch.setenv(LOSS_FILES, str(path))
    return path


def test_a_loss_of_ones_own_is_written_like_any_other(taylor: Path) -> None:
    (name,) = load_losses(taylor)
    logits, target = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0])
    distance = 1 - logits.softmax(dim=1).gather(1, target[:, None]).squeeze(1)
    value = parse_loss("series(terms=3)", reduction="none")(logits, target)
    torch.testing.assert_close(value, distance + distance**2 / 2 + distance**3 / 3)
    for text in ("nce+0.5*series(terms=6)+sr", "nseries", "NSeries", "normalized(series+ce)"):
        written = format_loss(parse_loss(text))
        assert name in written
        assert format_loss(parse_loss(written)) == written


def test_its_name_follows_its_code(tmp_path: Path) -> None:
    def name(*parts: str) -> str:
        (found,) = load_losses(write(tmp_path / "mine.py", *parts))
        return found

    first = name(HEAD, TAYLOR, TABLE)
    assert name(HEAD, "# A word.", TAYLOR, "def other(): pass", TABLE) == first
    assert name(HEAD, TAYLOR.replace("/ power", "/ (power + 1)"), TABLE) != first
    derived = "class Mine(Taylor):\n    pass\n\nLOSSES = {'series': Mine}"
    before = name(HEAD, TAYLOR, derived)
    assert name(HEAD, TAYLOR.replace("terms=2", "terms=3"), derived) != before


def test_a_loss_that_has_changed_or_has_no_file_is_told_so(taylor: Path, monkeypatch) -> None:
    for text in ("ce+series@000000(terms=3)", "nseries@000000"):
        with pytest.raises(LossSyntaxError, match="its code has changed since"):
            parse_loss(text)
    monkeypatch.delenv(LOSS_FILES)
    for text, message in (
        ("series@0a1b2c", LOSS_FILES),
        ("zzzz", r"unknown loss 'zzzz'; .*--loss-file"),
        ("may", r"unknown loss 'may'; did you mean 'mae'\?\n"),
    ):
        with pytest.raises(LossSyntaxError, match=message):
            parse_loss(text)


def test_several_files_are_known(taylor: Path, tmp_path: Path, monkeypatch) -> None:
    second = write(tmp_path / "more.py", HEAD, TAYLOR, 'LOSSES = {"other": Taylor}')
    monkeypatch.setenv(LOSS_FILES, f"{taylor}{os.pathsep}{second}")
    assert format_loss(parse_loss("series+other")).count("@") == 2
    twice = write(tmp_path / "twice.py", HEAD, TAYLOR, TABLE)
    monkeypatch.setenv(LOSS_FILES, f"{taylor}{os.pathsep}{twice}")
    with pytest.raises(ValueError, match="'series' is the name of a loss in another file too"):
        known_losses()


UNUSABLE: list[tuple[tuple[str, ...], str]] = [
    *(((TAYLOR, table), "expected a table of losses") for table in ("", "LOSSES = {}")),
    ((TAYLOR, "LOSSES = [Taylor]"), "expected a table of losses"),
    ((TAYLOR, 'LOSSES = {"Taylor": Taylor}'), "small letters"),
    *(
        ((TAYLOR, f'LOSSES = {{"{name}": Taylor}}'), f"not taken.*{name}")
        for name in ("gce", "apl", "nce")
    ),
    ((TAYLOR, 'LOSSES = {"a": Taylor, "na": Taylor}'), "not taken.*na"),
    (('LOSSES = {"mine": torch.nn.MSELoss}',), "a class derived from.*MSELoss; a module works"),
    (
        (TAYLOR.replace("self.t", "self.a = torch.nn.Parameter(torch.ones(1)); self.t", 1), TABLE),
        "without parameters of its own",
    ),
    ((TAYLOR, 'LOSSES = {"mine": Taylor()}'), "a class derived from"),
    *(
        ((TAYLOR.replace(before, after).replace("(**settings)", unnamed), TABLE), problem)
        for before, after, unnamed, problem in (
            ("terms=2", "terms", "(**settings)", r"\*\*settings.*got .*terms"),
            ("terms=2", "terms='two'", "(**settings)", "got ValueError"),
            ("self.terms =", "self.number =", "(**settings)", "got terms"),
            (", **settings", "", "()", r"\*\*settings.*got TypeError"),
        )
    ),
    (("x = 1 / 0",), "ZeroDivisionError"),
    (("import there_is_no_such_module",), "ModuleNotFoundError"),
    (("class",), "SyntaxError"),
]


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    for number, (parts, problem) in enumerate(UNUSABLE):
        path = write(tmp_path / f"mine{number}.py", HEAD, *parts)
        with pytest.raises(ValueError, match=problem) as refused:
            load_losses(path)
        assert str(refused.value).startswith(str(path))
    write(tmp_path / "mine.txt", HEAD, TAYLOR, TABLE)
    for name in ("nothing.py", "mine.txt", "."):
        with pytest.raises(ValueError, match=r"No such file|a Python file"):
            load_losses(tmp_path / name)


def test_the_page_shows_its_own_losss_version(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "guide" / "your-own-loss.md").read_text("utf-8")
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    (code,) = [each for each in blocks if "LOSSES = {" in each and "LOSSES," not in each]
    (name,) = load_losses(write(tmp_path / "my_losses.py", code))
    assert f"`{name}(epsilon=2)`" in text
