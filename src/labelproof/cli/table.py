"""`labelproof table` and `compare`: tables of the paper from records, and of your own runs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import typer

from labelproof.cli.console import tell
from labelproof.cli.options import split_names, takes
from labelproof.data.notices import count, few
from labelproof.experiments.comparison import compare_runs, find_unfinished, read_records
from labelproof.experiments.grids import GRIDS, choose_rows
from labelproof.experiments.tables import (
    compare_all,
    explain_left_out,
    further_methods,
    make_table,
    open_records,
)
from labelproof.ranges import choose
from labelproof.report.tables import COMPARISONS, FORMATS, SUFFIXES, SUMMARIES
from labelproof.training.files import write_text

SUMMARY = "summary"


@takes(losses=True)
def table(
    name: str,
    *,
    dataset: str | None = None,
    methods: str | None = None,
    columns: str | None = None,
    records: Path = Path("records"),
    format: str | None = None,
    output: Path | None = None,
) -> None:
    """Show a table of the paper: our results, the published ones, and the difference.

    The table of symmetric noise on CIFAR-10, for your own paper:

        labelproof table symmetric --dataset cifar10 --output symmetric.tex

    It uses only the records that 'labelproof bench' keeps: accuracy after the last epoch, mean and
    standard deviation over the available seeds. A cell without records shows a dash. Records with
    another number of epochs, or of data of another size than the published ones, are left out and
    counted on stderr. Your own loss gets a row once it is trained:

        labelproof bench symmetric --dataset mnist --methods 'gce(q=0.5)'

    Args:
        name: symmetric, asymmetric, comparison, imbalance, webvision, beyond, human, sweep-lambda,
            sweep-tau or sweep-p; or summary: which cells of all tables reproduce.
        format: markdown, latex, html or csv; a summary has no latex. By default from the ending of
            --output, else markdown.
        output: The file to write; by default stdout.
    """
    chosen = choose_format(format, output)
    choose("table", name, (*GRIDS, SUMMARY))
    store = open_records(records)
    if name == SUMMARY:
        if dataset or methods or columns or chosen not in SUMMARIES:
            known = ", ".join(SUMMARIES)
            raise ValueError(
                "summary: expected without --dataset, --methods and --columns, and --format one of "
                f"{known}"
            )
        text, note = SUMMARIES[chosen](compare_all(store)), explain_left_out(store)
    else:
        data = choose_dataset(f"table {name}", dataset, GRIDS[name].datasets)
        rows = split_names(methods)
        if not rows:
            rows = [*choose_rows(name, data), *further_methods(store, name, data)]
        made = make_table(store, name, data, methods=rows, columns=split_names(columns))
        text = FORMATS[chosen](made)
        note = explain_left_out(store, name, data)
    if note:
        tell(note, aside=True)
    write_or_print(text, output)


@takes()
def compare(folders: list[Path], *, format: str | None = None, output: Path | None = None) -> None:
    """Compare runs: their settings and their accuracy over seeds.

    Two losses with three seeds each, on your own data:

        for seed in 1 2 3; do for loss in ce ce+sr; do
          labelproof train --data photos/ --loss $loss --seed $seed --output runs/$loss-$seed
        done; done

        labelproof compare runs/

    Runs that differ only in their seed form one row: mean and standard deviation of the accuracy
    after the last epoch, and the number of seeds. The row also has the settings in which rows
    differ, and the difference to the best row on the same data and noise, paired by seed. Without a
    test split, accuracy is measured on held-out labels, which may be wrong. Unfinished runs are
    left out and listed on stderr.

    Args:
        folders: Runs, or folders of runs or records, with subfolders.
        format: markdown, latex or csv; by default from the ending of --output, else markdown.
        output: The file to write; by default stdout.
    """
    chosen = choose_format(format, output, COMPARISONS)
    records = read_records(*folders)
    if unfinished := find_unfinished(*folders):
        listed = few([str(folder) for folder in unfinished])
        tell(f"{count(len(unfinished), 'run')} not finished, left out: {listed}", aside=True)
    if not records:
        listed = ", ".join(str(folder) for folder in folders)
        raise ValueError(f"{listed}: expected finished runs or their records, found none")
    write_or_print(COMPARISONS[chosen](compare_runs(records)), output)


def write_or_print(text: str, output: Path | None) -> None:
    """Write a table to a file, or print it."""
    if output is None or str(output) == "-":
        typer.echo(text)
    else:
        write_text(output, text + "\n")
        tell(f"Wrote {output}", aside=True)


def choose_dataset(what: str, given: str | None, known: tuple[str, ...]) -> str:
    """The requested dataset, or the only one.

    >>> choose_dataset("table sweep-tau", None, ("cifar10",))
    'cifar10'
    >>> choose_dataset("table symmetric", None, ("mnist", "cifar10"))
    Traceback (most recent call last):
        ...
    ValueError: --dataset of table symmetric: expected one of mnist, cifar10, got none
    """
    if given is None and len(known) == 1:
        return known[0]
    if given is None:
        raise ValueError(f"--dataset of {what}: expected one of {', '.join(known)}, got none")
    return choose(f"--dataset of {what}", given, known)


def choose_format(
    format: str | None, output: Path | None, known: Collection[str] = tuple(FORMATS)
) -> str:
    """The requested format, or the one of the file's suffix, or Markdown.

    >>> choose_format(None, Path("symmetric.tex"))
    'latex'
    """
    if format is not None:
        return choose("format", format, known)
    if output is None or str(output) == "-":
        return "markdown"
    suffixes = {suffix: name for suffix, name in SUFFIXES.items() if name in known}
    return suffixes[choose("ending of --output", output.suffix.lower(), suffixes)]
