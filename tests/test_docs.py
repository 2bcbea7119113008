"""The docs tell the truth: every example runs, and prints what the page says it prints.

A page's ```python blocks run from top to bottom in one namespace. A ```text block right after one
is its output. A block under `<!-- not run: why -->` is only compiled.
"""

import contextlib
import doctest
import importlib
import io
import logging
import os
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from mkdocs.config import load_config
from scripts import ROOT, load_script

import labelproof
from labelproof.losses import LOSSES

DOCS = ROOT / "docs"
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]
CARDS = [page for page in sorted((DOCS / "methods").glob("*.md")) if page.name != "index.md"]
CARD_HEADINGS = ["What it does", "Formula", "Use it", "When to use it"]
CARD_HEADINGS += ["Hyperparameters and advice", "Numerics", "Reference"]
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where its first line stands in the page."""

    language: str
    text: str
    line: int
    runs: bool = True


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def read_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    fence, language, body, start, before = "", "", [], 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        opened = re.match(r" *(`{3,})(.*)", line)
        if fence and opened and opened[1] == fence and not opened[2].strip():
            runs = NOT_RUN.fullmatch(before.strip()) is None
            blocks.append(Block(language, textwrap.dedent("\n".join(body)), start, runs))
            fence, before = "", ""
        elif fence:
            body.append(line)
        elif opened:
            fence, language, body, start = opened[1], opened[2].strip(), [], number + 1
        elif line.strip():
            before = line
    return blocks


def shown_output(text: str, blocks: list[Block], index: int) -> str | None:
    """The text block that follows with nothing between, which is what the code must print."""
    if index + 1 == len(blocks) or blocks[index + 1].language != "text":
        return None
    code, output = blocks[index], blocks[index + 1]
    between = text.splitlines()[code.line - 1 + len(code.text.splitlines()) : output.line - 1]
    prose = [line for line in between if line.strip() and not line.strip().startswith("```")]
    return None if prose else output.text


def run_page(page: Path) -> None:
    text = page.read_text()
    blocks = read_blocks(text)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for index, block in enumerate(blocks):
        if block.language == "python":
            printed = run_block(page, block, namespace)
            expected = shown_output(text, blocks, index)
            if block.runs and expected is not None and printed.rstrip() != expected.rstrip():
                where = f"{name_of(page)}:{blocks[index + 1].line}"
                pytest.fail(f"{where}: the page shows\n{expected}\nbut the code prints\n{printed}")


def run_block(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    """Run a block as if the page were its source file, so that errors name the page's own line."""
    printed = io.StringIO()
    try:
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        if block.runs:
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)  # noqa: S102 (the repository's own pages)
    except Exception as error:
        line = error.lineno if isinstance(error, SyntaxError) else line_of(error, page)
        pytest.fail(f"{name_of(page)}:{line}: {type(error).__name__}: {error}")
    return printed.getvalue()


def line_of(error: Exception, page: Path) -> int | None:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(page):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@pytest.fixture
def quiet_randomness() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.mark.usefixtures("quiet_randomness")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_python_blocks_have_the_name_that_is_run() -> None:
    aliases = {"py", "python3", "python no-run", "pycon"}
    for page in PAGES:
        for block in read_blocks(page.read_text()):
            where = f"{name_of(page)}:{block.line}"
            assert block.language not in aliases, f"{where}: write ```python, so that it is run"


def test_a_broken_example_is_named_by_page_and_line_unless_excused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text, message in (
        ("a\n\n```python\nx = 1\n1 / 0\n```\n", "page.md:5: ZeroDivisionError: division by zero"),
        ("```python\nx = \n```\n", "page.md:2: SyntaxError"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "page.md:6: the page shows\n2"),
        ("```python\nx = 1\n```\n```python\nprint(x, y)\n```\n", "page.md:5: NameError"),
    ):
        page.write_text(text)
        with pytest.raises(pytest.fail.Exception, match=f"^{re.escape(message)}"):
            run_page(page)
    page.write_text("<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n")
    run_page(page)


def test_every_page_is_in_the_navigation() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert pages == set(navigation_targets(load_config(str(ROOT / "mkdocs.yml")).nav))


def navigation_targets(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    for child in entry.values() if isinstance(entry, dict) else entry:
        yield from navigation_targets(child)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in LINK.findall(page.read_text()):
            path = page.parent / target
            if path.parent == DOCS / "generated":
                path = DOCS / "figures" / f"{path.stem}.py"
            assert path.exists(), f"{name_of(page)}: no such file: {target}"


def test_every_loss_has_a_card_and_cards_have_the_same_headings() -> None:
    for card in CARDS:
        assert re.findall(r"^## (.*)$", card.read_text(), re.MULTILINE) == CARD_HEADINGS, card
    for key in LOSSES:
        written = re.compile(rf"^Written .*`{key}[`(]", re.MULTILINE)
        assert any(written.search(card.read_text()) for card in CARDS), (
            f"no card in docs/methods has a line that begins with 'Written `{key}`'"
        )


def test_everything_public_is_on_an_api_page() -> None:
    for module in ("losses", "schedules", "theory"):
        path = f"labelproof.{module}"
        page = (DOCS / "api" / f"{module}.md").read_text()
        directives = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
        if path not in directives:  # a directive for the module itself shows all that is public
            # A function that is named as its file is written with both names.
            shown = {directive.rpartition(".")[2] for directive in directives}
            assert set(importlib.import_module(path).__all__) <= shown


def test_the_package_exports_nothing_beside_its_documented_modules() -> None:
    verbs = re.findall(r"^::: \S+\.(\w+)$", (DOCS / "api" / "verbs.md").read_text(), re.MULTILINE)
    documented = set(verbs) | {
        name
        for module in ("losses", "schedules", "theory", "training")
        for name in getattr(importlib.import_module(f"labelproof.{module}"), "__all__", [])
    }
    assert set(labelproof.__all__) - {"__version__", "RobustClassifier"} <= documented


def test_the_docs_scripts_examples_are_true() -> None:
    for name in ("hooks", "docstrings"):
        result = doctest.testmod(load_script("docs", name))
        assert result.attempted > 0
        assert result.failed == 0


def test_a_formula_that_cannot_be_read_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    source = r'<div class="arithmatex">\[ a &lt; \nonsense \]</div>'
    with caplog.at_level(logging.WARNING):
        rendered = load_script("docs", "hooks").render_math(source, place="page.md")
    assert rendered == source
    assert r"page.md: cannot read the formula a < \nonsense" in caplog.text


def test_pictures_are_drawn_when_missing_or_older_than_their_source(tmp_path: Path) -> None:
    hooks = load_script("docs", "hooks")
    scripts, folder = tmp_path / "figures", tmp_path / "generated"
    scripts.mkdir()
    script = scripts / "one.py"
    script.write_text("def draw(folder):\n    (folder / 'one.svg').write_text('<svg/>')\n")
    hooks.draw_figures(scripts, folder)
    picture = folder / "one.svg"
    picture.write_text("kept")
    hooks.draw_figures(scripts, folder)
    assert picture.read_text() == "kept"
    later = picture.stat().st_mtime + 10
    os.utime(script, (later, later))
    hooks.draw_figures(scripts, folder)
    assert picture.read_text() == "<svg/>"
    (tmp_path / "two.py").write_text("def draw(folder):\n    pass\n")
    with pytest.raises(FileNotFoundError, match=r"did not write two\.svg"):
        load_script("docs", "hooks").draw_figures(tmp_path, tmp_path / "generated")
