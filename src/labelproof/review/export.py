"""Export the decisions of a review as a table of labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Set
from pathlib import Path

from labelproof.audit.folder import Audit
from labelproof.data.notices import count, few, readable
from labelproof.review.decisions import Decisions
from labelproof.review.standing import Review

COLUMNS = ("sample", "given", "label", "decision")


def export_csv(audit: Audit, decisions: Decisions) -> str:
    """All samples of an audit, in the order of the data, with their labels after the review.

    An undecided sample keeps its label and has no decision. An `unsure` one has no label, so that
    training leaves it out. Samples that an earlier file left out come last, still without a label.

    Args:
        audit: The samples.
        decisions: What was decided about them.

    Returns:
        CSV with the columns `sample`, `given`, `label` and `decision`.

    Example:
        >>> from labelproof.audit import audit_given
        >>> audit = audit_given([[0.1, 0.9], [0.8, 0.2], [0.1, 0.9]], ["cat", "cat", "dog"])
        >>> with Decisions(getfixture("tmp_path") / "review.sqlite") as decisions:
        ...     _ = decisions.decide("0", "cat", "accept", "dog")
        ...     print(export_csv(audit, decisions).splitlines()[:3])
        ['sample,given,label,decision', '0,cat,dog,accept', '1,cat,cat,']
    """
    review = Review(audit, decisions)
    classes = [readable(name) for name in audit.class_names]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    given = audit.findings.given.tolist()
    for place, sample in enumerate(audit.samples):
        choice, label = review.decision(place) or ("", given[place])
        wanted = "" if label is None else classes[label]
        table.writerow([readable(sample), classes[given[place]], wanted, choice])
    # Who was left out before stays out, though this audit has not seen it.
    for sample in audit.left_out:
        table.writerow([readable(sample), "", "", "unsure"])
    return text.getvalue()


def refuse_loss(file: Path, text: str, decided: Set[str]) -> None:
    r"""Refuse to overwrite an export that has corrections this review does not know.

    Two reviews of the same data may be exported to one file; overwriting one with the other would
    lose its decisions. Of samples that it has `decided` about at any time, a review may change its
    mind.

    Example:
        >>> file = getfixture("tmp_path") / "reviewed.csv"
        >>> _ = file.write_text("sample,given,label,decision\n1.jpg,cat,dog,accept\n")
        >>> new = "sample,given,label,decision\n1.jpg,cat,cat,\n"
        >>> refuse_loss(file, new, {"1.jpg"})
        >>> refuse_loss(file, new, set())
        Traceback (most recent call last):
            ...
        ValueError: --export: ...reviewed.csv has 1 label that another review decided, such as ...
    """
    labels = {row["sample"]: row["label"] for row in csv.DictReader(io.StringIO(text))}
    with file.open(encoding="utf-8", newline="") as stream:
        lost = [
            f"{row['sample']} ({row['label'] or 'left out'}, here {labels[row['sample']]})"
            for row in csv.DictReader(stream)
            if row["decision"]
            and row["sample"] not in decided
            and labels.get(row["sample"], row["label"]) != row["label"]
        ]
    if lost:
        raise ValueError(
            f"--export: {file} has {count(len(lost), 'label')} that another review decided, such "
            f"as {few(lost, shown=2)}, and that this one would take back; choose another name"
        )
