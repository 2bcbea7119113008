"""`labelproof audit` and `review`: which labels are wrong, and what you decide about them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import labelproof
from labelproof.audit import read_labels
from labelproof.cli.console import carry_out, show_warnings, terminal
from labelproof.cli.options import takes
from labelproof.verbs.audit import AuditPlan, default_folder


@takes("audit", settings=("batch_size", "learning_rate", "augmentation"))
def audit(
    data: str,
    *,
    probabilities: Path | None = None,
    class_names: str | None = None,
    loss_file: list[Path] | None = None,
    dry_run: bool = False,
    **given: Any,
) -> None:
    """Find out which labels are wrong, how many, and which classes are confused.

    From a folder of images, or a table:

        labelproof audit photos/

        labelproof audit customers.csv --label churned

    Each label is judged by a model that has not seen it: on a table by a blend of classifiers, in
    seconds; on images, or with any option about a network or its training, by networks trained by
    cross-validation with a robust loss. Without training: a run of 'labelproof fit', or the
    predictions of any other model:

        labelproof audit photos-fit

        labelproof audit photos/ --probabilities predictions.csv

    It writes suspects.csv and report.html. Go through the suspects with 'labelproof review'. If
    interrupted, the same command resumes.

    Args:
        data: Data as for 'labelproof fit'; or a run's folder, to let its network judge its training
            labels.
        probabilities: Out-of-sample predictions of your own model, in place of training: a table
            with a column per class, or a .npy or .npz file of shape (samples, classes) with columns
            in the order of the class names. Rows are in the order of the data, unless --id names a
            column. DATA may then be labels only: a .npy or .txt file of names or class indices, or
            a table.
        class_names: With --probabilities: the class of each column, if labels lack some classes; a
            file with one name per line, or names separated by commas. By default the classes,
            sorted by name.
        id: With --probabilities: the column of the predictions that identifies the sample, by the
            column of the same name in the data, or by the audit's sample names ('line 7', or a path
            within the folder).
        labels: A table with the columns sample and label that replaces the data's own labels, such
            as 'labelproof review' exports; samples with an empty label are left out.
        output: The audit's folder; by default NAME-OF-THE-DATA-audit, or RUN/audit.
        dry_run: Write nothing; print the plan and, on a CPU, the estimated time.
    """
    given["output"] = given["output"] or default_folder(data, given["labels"])
    given |= {"probabilities": probabilities, "class_names": _read_names(class_names)}
    reporter = terminal()
    carry_out(AuditPlan(data, **given, progress=reporter), reporter, dry_run=dry_run)


@takes("review")
def review(folder: Path, **given: Any) -> None:
    """Review the suspects of an audit in the browser, one key per decision.

    For example:

        labelproof review photos-audit

        labelproof review photos-audit --export reviewed.csv

    K keeps the label, A accepts the suggestion, C chooses another class, U leaves the sample out of
    training as unsure, Z undoes the last decision. Each decision is saved at once; Ctrl-C ends the
    review, and the same command resumes it.

    The exported table has one row per sample: sample, given, label, decision. Unsure samples have
    an empty label.

    The server accepts connections from this machine only. From another machine, forward the port
    under the same number: ssh -L 8000:127.0.0.1:8000 HOST, and use --port 8000 there.

    Args:
        folder: The folder of an audit, or of a run with one.
        open_page: Open the page in a browser. Other users of this machine may then see its address
            in the process list, and open the review with it.
        export: Write the decisions to this CSV file (- for stdout) instead of serving.
    """
    with show_warnings():
        labelproof.review(folder, **given, progress=terminal())


def _read_names(names: str | None) -> list[str] | None:
    """Class names: a file with one name per line, or names separated by commas."""
    if names is None:
        return None
    file = os.path.expanduser(names)
    if os.path.isfile(file):
        return read_labels(file).astype(str).tolist()
    return [name.strip() for name in names.split(",")]
