"""The outcome of a review as a table: what every label is to be."""

from __future__ import annotations

import csv
import io

from labelproof.audit.folder import Audit
from labelproof.data.notices import readable
from labelproof.review.standing import Review
from labelproof.review.store import Decisions

__all__ = ["COLUMNS", "export_csv"]

COLUMNS = ("sample", "given", "label", "decision")


def export_csv(audit: Audit, decisions: Decisions) -> str:
    """All samples of an audit, in the order of the data, with the label each is to have.

    A sample nobody decided about keeps its label and has no decision. One that is left open
    (`unsure`) has no label: nothing should be learned from it. Those that were left out of the
    audit by an earlier file come last, still without a label.

    Args:
        audit: The samples.
        decisions: What was decided about them.

    Returns:
        CSV with the columns `sample`, `given`, `label` and `decision`.

    Example:
        >>> from labelproof.audit.findings import Estimate
        >>> from labelproof.audit.findings import Findings
        >>> import numpy as np
        >>> share = Estimate(0.5, 0.0, 1.0)
        >>> findings = Findings(
        ...     given=np.array([0, 0]),
        ...     suggested=np.array([1, 0]),
        ...     score=np.array([0.9, 0.1], np.float32),
        ...     noise_rate=share,
        ...     transition=np.eye(2),
        ...     transition_low=np.eye(2),
        ...     transition_high=np.eye(2),
        ...     temperature=1.0,
        ... )
        >>> names = ["1.jpg", "2.jpg"]
        >>> audit = Audit(
        ...     "pets", "pets", "unknown", ("cat", "dog"), names, np.arange(2), findings, share
        ... )
        >>> with Decisions(getfixture("tmp_path") / "review.sqlite") as decisions:
        ...     _ = decisions.decide("1.jpg", "cat", "accept", "dog")
        ...     print(export_csv(audit, decisions))
        sample,given,label,decision
        1.jpg,cat,dog,accept
        2.jpg,cat,cat,
        <BLANKLINE>
    """
    review = Review(audit, decisions)
    classes = [readable(name) for name in audit.class_names]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    given = audit.findings.given.tolist()
    for place, sample in enumerate(audit.samples):
        choice, label = review.decision(place) or ("", given[place])
        table.writerow(
            [
                readable(sample),
                classes[given[place]],
                "" if label is None else classes[label],
                choice,
            ]
        )
    # Who was left out before stays out, though this audit has not seen it.
    for sample in audit.left_out:
        table.writerow([readable(sample), "", "", "unsure"])
    return text.getvalue()
