"""Pages that stand alone: one template, everything in it, whatever is shown escaped."""

from __future__ import annotations

from pathlib import Path

import jinja2

from labelproof.training.files import write_text

__all__ = ["render_page", "templates", "write_page"]


def write_page(path: Path, template: str, **values: object) -> Path:
    """Fill in a template of this package and write it, whole or not at all.

    Args:
        path: Where the page goes; it needs nothing beside it.
        template: The template's file name.
        values: What it shows; a name that the template uses and that is not given is an error.
    """
    write_text(path, render_page(template, **values))
    return path


def render_page(template: str, **values: object) -> str:
    """Fill in a template of this package; see `write_page`."""
    return templates("labelproof.report").get_template(template).render(**values)


def templates(package: str) -> jinja2.Environment:
    """The templates of a package, which escape what they are given and miss nothing silently."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
