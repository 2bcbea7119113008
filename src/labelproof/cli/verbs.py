"""`labelproof fit`, `tune`, `train`, `audit` and `review`: the verbs, for data given by a path.

What they need is imported when one of them is run: their help does not wait for torch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labelproof.cli.main import loading
from labelproof.cli.options import read_assignments, read_settings, takes

if TYPE_CHECKING:
    from labelproof.training.runner import Event
    from labelproof.verbs.progress import Callback

_SETTINGS = (
    *("noise", "loss", "network", "epochs", "seed", "batch_size", "learning_rate"),
    *("augmentation", "algorithm", "validation"),
)


@takes("fit", settings=("batch_size", "learning_rate", "l1", "augmentation"), losses=True)
def fit(
    data: str,
    *,
    dry_run: bool = False,
    **given: Any,
) -> None:
    """Train on your own data when some of its labels are wrong.

    A folder of images, or a table:

        labelproof fit photos/

        labelproof fit customers.csv --label churned --drop comment

        labelproof fit photos/ --labels reviewed.csv

    On a table, classifiers are compared on held-out labels, and the best are blended; that takes
    seconds. On images, or with any option about a network or its training, a network is trained
    with a robust loss, and a tenth of the examples is held out for validation. At the end, labels
    that look wrong are flagged in a report. Use the run's folder to predict and to review:

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


@takes("tune", settings=("batch_size", "learning_rate", "augmentation"), losses=True)
def tune(
    data: str,
    *,
    folds: int = 0,
    output: Path | None = None,
    **given: Any,
) -> None:
    """Choose the loss and its hyperparameters without clean labels.

    The search holds out some examples with their noisy labels, trains each setting on the rest and
    chooses the one that best predicts the held-out labels. It starts with settings that are known
    to work, then varies the best ones and draws new ones.

        labelproof tune photos/ --trials 20

        labelproof tune photos/ --labels reviewed.csv

    Test it on data with known labels:

        labelproof tune digits --noise symmetric:0.4 --trials 10 --epochs 20

    Ctrl-C prints the best setting so far. The same command resumes from its file, also with more
    --trials.

    Args:
        data: The path of your own data, as 'labelproof fit' takes it, or a dataset's name (digits,
            mnist, cifar10, ...; see 'labelproof data list').
        losses: A loss to try first, such as 'nce+mae'.
        folds: Folds of the cross-validation of each setting; 1 holds out a single part. By default
            3 below 10,000 examples, else 1.
        output: The file of the search, written after every run; by default DATA-tuning.json.
    """
    with loading("Reading the data ..."):
        from labelproof.cli.console import DIVERGED, ending, terminal
        from labelproof.verbs.summaries import stem_of
        from labelproof.verbs.tune import tune as choose_loss

    given["output"] = output or Path(f"{stem_of(data, given['labels'])}-tuning.json")
    given |= {"losses": given["losses"] or (), "folds": folds or "auto"}
    reporter = terminal()
    with ending(reporter):
        found = choose_loss(data, **given, progress=reporter)
    if found.best is None:
        raise typer.Exit(DIVERGED)


@takes("train", settings=_SETTINGS, losses=True)
def train(
    *,
    data: str | None = None,
    preset: str | None = None,
    config: Path | None = None,
    assign: list[str] | None = None,
    output: Path | None = None,
    fresh: bool = False,
    checkpoint_seconds: float = 30.0,
    tensorboard: bool = False,
    dry_run: bool = False,
    **given: Any,
) -> None:
    """Train a network with every setting under your control, and keep a record of the run.

    The paper's setting, sparse regularization on CIFAR-10 with 60% wrong labels:

        labelproof train --data cifar10 --noise symmetric:0.6 --loss ce+sr --preset paper

    A quick first run:

        labelproof train --data digits --noise symmetric:0.4 --loss ce+sr --epochs 20

    Your own data, with reviewed labels:

        labelproof train --data photos/ --labels reviewed.csv --loss ce+sr

    After Ctrl-C or a crash, the same command resumes from the last checkpoint, with the same
    result. A finished run is not trained again, and a run never resumes on different data or
    labels. Options override --set, which overrides --config, which overrides --preset. Several
    GPUs:

        torchrun --nproc-per-node 4 -m labelproof train --data cifar10

    Args:
        data: A dataset's name (digits, mnist, cifar10, ...; see 'labelproof data list') or the path
            of your own. Required, here or in --config.
        noise: Label noise to add: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE or
            human:WHICH. With --preset paper, as in the authors' code.
        loss: The loss, such as ce, the default, 'gce(q=0.7)' or ce+sr; 'labelproof losses' lists
            all. With --preset paper, a name from the paper's tables takes its settings; CE+SR by
            default.
        epochs: Passes over the training examples; 50 by default, with a preset the paper's.
        preset: paper: the paper's settings for mnist, cifar10, cifar100 or webvision.
        config: A TOML file of settings (batch_size = 64), such as --dry-run prints.
        assign: Any setting that --config can hold, NAME=VALUE, such as momentum=0.8 or
            optimizer=adamw.
        validation: Share of the training examples to hold out for validation; 0 by default.
        output: The run's folder; by default labelproof-runs/NAME-OF-THE-CONFIGURATION.
        checkpoint_seconds: Seconds between checkpoints; 0 writes one after every epoch.
        tensorboard: Write TensorBoard event files to the folder.
        dry_run: Train nothing; print all settings as a file for --config.
    """
    with loading("Reading the data ..."):
        from rich.console import Console

        from labelproof.cli.console import carry_out, terminal
        from labelproof.training.execution import launched
        from labelproof.verbs.inputs import Request
        from labelproof.verbs.train import TrainPlan, choose_configuration, default_folder

    values = read_settings(config) if config is not None else {}
    values |= read_assignments(assign or ())
    options = {"data": data} | {name: given.pop(name) for name in _SETTINGS}
    values |= {name: value for name, value in options.items() if value is not None}
    reporter = terminal(Console(quiet=launched() and os.environ["RANK"] != "0"))
    request = Request(values.get("data"), progress=reporter, **given)
    configuration = choose_configuration(values, preset=preset, look=lambda: request.dataset)
    folder = output if output is not None else default_folder(configuration, given["labels"])
    plan = TrainPlan(configuration, request, folder, fresh, checkpoint_seconds)
    if tensorboard and not reporter.console.quiet and not dry_run:
        reporter.callback = write_scalars(folder / "tensorboard")
    carry_out(plan, reporter, dry_run=dry_run)


def write_scalars(folder: Path) -> Callback:
    """A callback that writes the metrics of each epoch for TensorBoard."""
    from labelproof.training.runner import Event

    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        install = "pip install 'labelproof[tensorboard]'"
        raise ImportError(f"--tensorboard: TensorBoard is not installed: {install}") from None
    writers: list[SummaryWriter] = []

    def take(event: Event | str) -> None:
        if not isinstance(event, Event):
            return
        if event.kind == "started":
            # A resumed run replaces what was written about this epoch and later ones.
            writers.append(SummaryWriter(str(folder), purge_step=event.value))
        elif event.kind == "epoch":
            for name, value in event.value.items():
                if name != "epoch":
                    writers[-1].add_scalar(name, value, int(event.value["epoch"]))
            writers[-1].flush()

    return take


@takes("audit", settings=("batch_size", "learning_rate", "augmentation"), losses=True)
def audit(
    data: str,
    *,
    probabilities: Path | None = None,
    class_names: str | None = None,
    dry_run: bool = False,
    **given: Any,
) -> None:
    """Find out which labels are wrong, how many, and which classes are confused.

    From a folder of images, or a table:

        labelproof audit photos/

        labelproof audit customers.csv --label churned

    Each label is judged by a model that has not seen it: on a table by a blend of classifiers, in
    seconds; on images, or with any option about a network or its training, by networks trained by
    cross-validation with a robust loss. To audit without training, pass a run of 'labelproof fit'
    or the predictions of another model:

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
        id: A column of the table, such as customer_id, to write beside each suspect. With
            --probabilities it also matches predictions to samples: by the column of that name in
            the data, else by the audit's sample names ('line 7', or a path within the folder).
        labels: A table with the columns sample and label that replaces the data's own labels, such
            as 'labelproof review' exports; samples with an empty label are left out.
        output: The audit's folder; by default NAME-OF-THE-DATA-audit, or RUN/audit.
        dry_run: Write nothing; print the plan and, on a CPU, the estimated time.
    """
    with loading("Reading the data ..."):
        from labelproof.audit import read_labels
        from labelproof.cli.console import carry_out, terminal
        from labelproof.verbs.audit import AuditPlan, default_folder

    names = None if class_names is None else [name.strip() for name in class_names.split(",")]
    if class_names is not None and os.path.isfile(os.path.expanduser(class_names)):
        names = read_labels(os.path.expanduser(class_names)).astype(str).tolist()
    given["output"] = given["output"] or default_folder(data, given["labels"])
    given |= {"probabilities": probabilities, "class_names": names}
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

    The exported table has one row per sample with the columns sample, id (if the audit had --id),
    given, label and decision. Unsure samples have an empty label.

    The server accepts connections from this machine only. From another machine, forward the port
    under the same number: ssh -L 8000:127.0.0.1:8000 HOST, and use --port 8000 there.

    Args:
        folder: The folder of an audit, or of a run with one.
        open_page: Open the page in a browser. Other users of this machine may then see its address
            in the process list, and open the review with it.
        export: Write the decisions to this CSV file (- for stdout) instead of serving.
    """
    with loading():
        from labelproof.cli.console import terminal
        from labelproof.verbs.review import review as serve

    serve(folder, **given, progress=terminal())
