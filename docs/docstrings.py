"""Readies docstrings for Markdown, which reads a doctest's `>>>` as a quotation.

Doctests are put between code fences, `Example:` gets the name griffe gives that section, and
`Reference:` becomes a paragraph where griffe would make a box of it.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

__all__ = ["ReadyDocstrings", "ready"]

_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?P=indent).*\S.*)*", re.MULTILINE)
_EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)
_REFERENCE = re.compile(r"^Reference:\n((?: {4}.*\n?)+)", re.MULTILINE)


def ready(docstring: str) -> str:
    r"""Rewrite a docstring for the docs site.

    >>> ready("    >>> 1 + 1\n    2")
    '    ```pycon\n    >>> 1 + 1\n    2\n    ```'
    >>> ready("Reference:\n    Peano, 1889.")
    '**Reference:**\nPeano, 1889.'
    """
    docstring = _EXAMPLE.sub(r"\1Examples:", docstring)
    docstring = _REFERENCE.sub(
        lambda match: "**Reference:**\n" + textwrap.dedent(match[1]), docstring
    )
    return _DOCTEST.sub(r"\g<indent>```pycon\n\g<0>\n\g<indent>```", docstring)


class ReadyDocstrings(griffe.Extension):
    """Rewrites the docstring of every object that mkdocstrings loads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one object's docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = ready(obj.docstring.value)
