"""`labelproof fit`: train on your own data, given its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelproof.cli.main import loading
from labelproof.cli.options import takes


@takes("fit", settings=("batch_size", "learning_rate", "l1", "augmentation"))
def fit(
    data: str,
    *,
    loss_file: list[Path] | None = None,
    dry_run: bool = False,
    **given: Any,
) -> None:
    """Train on your own data, when an unknown share of its labels is wrong.

    A folder of images, or a table:

        labelproof fit photos/

        labelproof fit customers.csv --label churned --drop comment

        labelproof fit photos/ --labels reviewed.csv

    On a table, classifiers are compared on held-out labels, and the best are blended; that takes
    seconds. On images, or with any option about a network or its training, a network is trained
    with a robust loss, and a tenth of the examples is held out for validation. At the end, labels
    that look wrong are flagged in a report. Use the folder it leaves to predict and to review:

        labelproof predict photos-fit new-photos/

        labelproof review photos-fit

    If interrupted, the same command resumes from the last checkpoint; a blend starts over.

    Args:
        data: A folder of images with a folder for each class, a table of image files and labels, a
            table of features with a label column (.csv, .tsv, .jsonl, .csv.gz, .parquet, .xlsx), a
            file of arrays (.npz), or a dataset's name.
        output: The run's folder; by default DATA-fit, or DATA-LABELS-fit.
        dry_run: Train nothing; print the recipe as a file that 'labelproof train' reads.
    """
    with loading("Reading the data ..."):
        from labelproof.cli.console import carry_out, terminal
        from labelproof.verbs.fit import FitPlan
        from labelproof.verbs.summaries import stem_of

    given["output"] = given["output"] or Path(f"{stem_of(data, given['labels'])}-fit")
    reporter = terminal()
    plan = FitPlan(data, **given, progress=reporter)
    carry_out(plan, reporter, dry_run=dry_run)
