"""What a picture calls a loss: as someone would write it, not as a record has to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from labelproof.losses import format_loss, parse_loss

__all__ = ["loss_labels"]

_CALL = re.compile(r"([A-Za-z_]\w*)(@[0-9a-f]{6})?\(([^()]*)\)")
_VERSION = re.compile(r"@[0-9a-f]{6}\b")


def loss_labels(methods: Sequence[str]) -> list[str]:
    """Short names of methods: without arguments that have their defaults, and without versions.

    Methods that would be called the same keep what they differ in.

    Args:
        methods: Rows of the tables, and losses as records have them.

    Example:
        >>> loss_labels(["CE+SR", format_loss(parse_loss("gce(q=0.5)+sr(p=0.01)"))])
        ['CE+SR', 'gce(q=0.5)+sr(p=0.01)']
        >>> loss_labels(["mine@0a1b2c"]), loss_labels(["mine@0a1b2c", "mine@3f9c21"])
        (['mine'], ['mine@0a1b2c', 'mine@3f9c21'])
    """
    plain = [_CALL.sub(_without_defaults, method) for method in methods]
    short = [_VERSION.sub("", name) for name in plain]
    alike = Counter(dict(zip(methods, short, strict=True)).values())
    return [name if alike[name] == 1 else full for name, full in zip(short, plain, strict=True)]


def _without_defaults(call: re.Match[str]) -> str:
    name, version, arguments = call[1], call[2] or "", call[3].split(",")
    usual = _usual_arguments(name)
    kept = ",".join(argument for argument in arguments if argument not in usual)
    return f"{name}{version}({kept})" if kept else f"{name}{version}"


def _usual_arguments(name: str) -> list[str]:
    try:
        written = format_loss(parse_loss("ce+sr" if name == "sr" else name))
    except ValueError:  # a row of the tables, or a loss of someone's own that is not here
        return []
    found = _CALL.search(written)
    return found[3].split(",") if found else []
