"""What the docs build does besides Markdown: pictures from code, results, and formulas as MathML.

Results: `docs/results.py` fills the pages under `docs/reproduction/` and draws their figures from
`records/`, so that they cannot be older than the records. Pictures: every `docs/figures/NAME.py`
has a `draw(folder)` that writes `NAME.svg` into `docs/generated/`, which is not committed.
Formulas: browsers show MathML by themselves, so the pages need no script, no font and no network. A
formula that cannot be read is a warning, which `mkdocs build --strict` makes fatal.
"""

from __future__ import annotations

import html
import importlib.util
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from math_core import LatexError, LatexToMathML

__all__ = [
    "draw_figures",
    "is_stale",
    "on_page_content",
    "on_page_markdown",
    "on_pre_build",
    "render_math",
]

DOCS = Path(__file__).parent
SOURCES = DOCS.parent / "src" / "labelproof"
RECORDS = DOCS.parent / "records"
RESULTS = DOCS / "results.py"

_LOG = logging.getLogger("mkdocs.hooks.labelproof")
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def on_pre_build(**_: Any) -> None:
    """Draw the pictures that are missing or older than what they are drawn from."""
    draw_figures(DOCS / "figures", DOCS / "generated")
    sources = [RESULTS, *SOURCES.rglob("*.py"), *RECORDS.rglob("*.json"), *RECORDS.rglob("*.npz")]
    results = _load(RESULTS)
    for picture in results.draw(
        results.RecordStore(RECORDS), DOCS / "generated", lambda path: is_stale(path, sources)
    ):
        _LOG.info("drew %s", picture.name)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put measured numbers, tables and figures into the pages that report them."""
    place = page.file.src_uri
    if not place.startswith("reproduction/"):
        return markdown
    results = _load(RESULTS)
    return results.fill(markdown, results.RecordStore(RECORDS), page=place)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Turn the formulas of a page, its docstrings included, into MathML."""
    return render_math(content, place=page.file.src_uri)


def draw_figures(scripts: Path, folder: Path) -> None:
    """Draw each script's picture into `folder`, unless it is there and newer than the code.

    Writing only what is stale keeps `mkdocs serve` from answering its own writes for ever.
    """
    for script in sorted(scripts.glob("*.py")):
        picture = folder / f"{script.stem}.svg"
        if is_stale(picture, [script, *SOURCES.rglob("*.py")]):
            folder.mkdir(exist_ok=True)
            _load(script).draw(folder)
            if not picture.exists():
                raise FileNotFoundError(f"{script}: draw(folder) did not write {picture.name}")


def is_stale(picture: Path, sources: Iterable[Path]) -> bool:
    """Whether the picture is missing or older than one of its sources."""
    if not picture.exists():
        return True
    drawn = picture.stat().st_mtime
    return any(source.stat().st_mtime > drawn for source in sources)


def render_math(content: str, *, place: str) -> str:
    r"""Replace what `pymdownx.arithmatex` marked as a formula by MathML.

    >>> render_math(r'<span class="arithmatex">\(u_y\)</span>', place="page.md")
    '<math><msub><mi>u</mi><mi>y</mi></msub></math>'
    """
    converter = LatexToMathML(fancy_error=False)

    def convert(match: re.Match[str], *, display: bool) -> str:
        formula = html.unescape(match[1]).strip()
        try:
            return converter.convert_with_local_state(formula, displaystyle=display)
        except LatexError as error:
            _LOG.warning("%s: cannot read the formula %s: %s", place, formula, error)
            return match[0]

    content = _BLOCK.sub(lambda match: convert(match, display=True), content)
    return _INLINE.sub(lambda match: convert(match, display=False), content)


def _load(script: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"figure_{script.stem}", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
