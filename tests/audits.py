"""Audits of made data, for the tests of what is shown and decided."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from labelproof.audit.findings import Estimate, Findings
from labelproof.audit.folder import Audit

COLOURS = ("red", "green", "blue", "gold", "purple", "teal", "orange", "black")


def make_findings(
    samples: int, classes: int, *, wrong: float = 0.1, seed: int = 0
) -> tuple[Findings, np.ndarray]:
    """Findings that are mostly right, and the true labels they are about."""
    generator = np.random.default_rng(seed)
    true = np.sort(generator.integers(classes, size=samples))
    flipped = generator.random(samples) < wrong
    given = np.where(flipped, (true + generator.integers(1, classes, samples)) % classes, true)
    score = np.clip(np.where(flipped, 0.9, 0.06) + generator.normal(0, 0.08, samples), 0.001, 0.999)
    suggested = np.where(score > 0.5, np.where(flipped, true, (given + 1) % classes), given)
    counts = np.zeros((classes, classes))
    np.add.at(counts, (true, given), 1)
    transition = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rate = float(np.mean(flipped))
    likeliest = (true[:, None] + np.arange(min(classes, 3))) % classes
    probability = np.tile(np.array([0.7, 0.2, 0.1], np.float32), (samples, 1))
    findings = Findings(
        given=given.astype(np.int64),
        suggested=suggested.astype(np.int64),
        score=score.astype(np.float32),
        noise_rate=Estimate(rate, max(rate - 0.02, 0), min(rate + 0.02, 1)),
        transition=transition,
        transition_low=np.clip(transition - 0.03, 0, 1),
        transition_high=np.clip(transition + 0.03, 0, 1),
        temperature=1.2,
        likeliest=likeliest.astype(np.int32),
        probability=probability[:, : likeliest.shape[1]],
    )
    return findings, true


def make_audit(findings: Findings, class_names: Sequence[str], **changes: Any) -> Audit:
    """An audit of samples that are nowhere and called by their numbers, unless changed."""
    audit = Audit(
        name="made",
        data="made",
        kind="unknown",
        class_names=tuple(class_names),
        samples=[str(number) for number in range(len(findings))],
        index=np.arange(len(findings)),
        findings=findings,
    )
    return replace(audit, **changes)


def agreeing(findings: Findings, share: float) -> Findings:
    """The findings, with predictions that agree with such a share of the labels."""
    other = np.arange(len(findings)) >= round(share * len(findings))
    classes = np.arange(findings.likeliest.shape[1])
    likeliest = (findings.given[:, None] + other[:, None] + classes) % findings.num_classes
    return replace(findings, likeliest=likeliest.astype(np.int32))


def make_photos(
    folder: Path, *, samples: int = 60, names: Sequence[str] = COLOURS[:3], seed: int = 0
) -> Audit:
    """A folder of small pictures, one colour a class, some in the wrong folder, and its audit."""
    # Sorted as the folder will be read: by class, then by file.
    names = sorted(names)
    findings, true = make_findings(samples, len(names), seed=seed)
    order = np.lexsort((np.arange(samples), findings.given))
    for number, place in enumerate(order.tolist()):
        path = folder / names[findings.given[place]] / f"{number:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.new("RGB", (32, 24), COLOURS[true[place] % len(COLOURS)])
        # No two alike, or they would be told to be duplicates.
        picture.putpixel((number % 32, number // 32 % 24), (255, 255, number % 256))
        picture.save(path)
    arrays = ("given", "suggested", "score", "likeliest", "probability")
    findings = replace(findings, **{name: getattr(findings, name)[order] for name in arrays})
    method = {"predictions": "cross-validation", "folds": 2, "network": "cnn4", "epochs": 3}
    given = enumerate(findings.given.tolist())
    return make_audit(
        findings,
        names,
        name=folder.name,
        data=str(folder),
        kind="images",
        samples=[f"{names[label]}/{number:05}.png" for number, label in given],
        method={**method, "loss": "gce(q=0.7)"},
    )
