"""`labelproof fit` and `tune`: train on your own data, given its path, or choose a loss for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

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


@takes("tune", settings=("batch_size", "learning_rate", "augmentation"), without=("losses",))
def tune(
    data: str,
    *,
    loss: list[str] | None = None,
    loss_file: list[Path] | None = None,
    folds: int = 0,
    output: Path = Path("tuning.json"),
    **given: Any,
) -> None:
    """Choose the loss and its hyperparameters without clean labels.

    The search holds out some examples with their noisy labels, trains each setting on the rest and
    chooses the one that agrees best with the held-out labels. It starts with settings that are
    known to work and continues with steps from the best and new draws.

        labelproof tune photos/ --trials 20

        labelproof tune photos/ --labels reviewed.csv

    Test it on data with known labels:

        labelproof tune digits --noise symmetric:0.4 --trials 10 --epochs 20

    Ctrl-C prints the best setting so far. The same command resumes from its file, also with more
    --trials.

    Args:
        data: The path of your own data, as 'labelproof fit' takes it, or a dataset's name (digits,
            mnist, cifar10, ...; see 'labelproof data list').
        loss: A loss to try first, such as 'nce+mae'.
        folds: Folds of the cross-validation of each setting; 1 holds out a single part. By default
            3 below 10,000 examples, else 1.
        output: The file of the search, written after every run.
    """
    with loading("Reading the data ..."):
        from labelproof.cli.console import DIVERGED, ending, terminal
        from labelproof.verbs.tune import tune as choose_loss

    given |= {"losses": loss or (), "folds": folds or "auto", "output": output}
    reporter = terminal()
    with ending(reporter):
        found = choose_loss(data, **given, progress=reporter)
    if found.best is None:
        raise typer.Exit(DIVERGED)
