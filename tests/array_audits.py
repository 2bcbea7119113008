"""Audits of images in an array, and what their pages show of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from audits import make_audit, make_findings

from labelproof.audit.findings import Findings
from labelproof.audit.folder import Audit
from labelproof.audit.samples import Samples
from labelproof.data.dataset import Dataset, Split

if TYPE_CHECKING:
    from playwright.sync_api import Page


Written = tuple[Audit, Path]
"""An audit, and its page."""


def with_scores(findings: Findings, score: np.ndarray) -> Findings:
    """The findings with other scores: what is not suspected any more keeps its label."""
    suggested = np.where(score > 0.5, findings.suggested, findings.given)
    return replace(findings, score=score.astype(np.float32), suggested=suggested)


def made_audit(
    samples: int, names: tuple[str, ...], *, findings: Findings | None = None
) -> tuple[Audit, Samples]:
    """An audit of noise in an array of small images."""
    findings = findings or make_findings(samples, len(names))[0]
    pixels = np.random.default_rng(0).integers(0, 256, (samples, 3, 32, 32), dtype=np.uint8)
    data = Dataset("made", {"train": Split(pixels, findings.given)}, names, (0.5,) * 3, (0.3,) * 3)
    audit = make_audit(findings, names, data="made.npz", kind="images")
    return audit, Samples(audit, data)


def suspects_of(audit: Audit) -> list[tuple[str, str, str]]:
    """The given label, the suggested one, and the name of each suspect."""
    findings, names = audit.findings, audit.class_names
    return [
        (names[findings.given[i]], names[findings.suggested[i]], audit.samples[i])
        for i in map(int, findings.suspects)
    ]


def cards(page: Page) -> list[tuple[str, str, str]]:
    """The given label, the suggested one, and the name on each card."""
    return [
        tuple(card)
        for card in page.eval_on_selector_all(
            "#gallery .card",
            """cards => cards.map(card => [".given", ".suggestion", ".name"].map(
                part => card.querySelector(part)?.lastChild.textContent.trim() ?? ""))""",
        )
    ]
