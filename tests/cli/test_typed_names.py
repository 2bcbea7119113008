"""Several names in one argument."""

from __future__ import annotations

import pytest

from labelproof.cli.arguments import split_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0.2 0.8", ["0.2", "0.8"]),
        ("0.2,0.8", ["0.2", "0.8"]),
        (" CE ,\n CE+SR, ", ["CE", "CE+SR"]),
        ("ce+sr(tau=0.5,p=0.1),mae", ["ce+sr(tau=0.5,p=0.1)", "mae"]),
        (
            "gce(q=0.5, clamp=1e-7)+sr(p=0.1, tau=1) CE",
            ["gce(q=0.5, clamp=1e-7)+sr(p=0.1, tau=1)", "CE"],
        ),
        ("ce+sr(tau=1", ["ce+sr(tau=1"]),
        ("", []),
        (",", []),
    ],
)
def test_names_are_taken_apart(text: str, names: list[str]) -> None:
    assert split_names(text) == names
