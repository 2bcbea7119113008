"""`labelproof compare`: runs of one's own side by side, over their seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelproof.cli.table import choose_format, write_or_print
from labelproof.data.notices import count, few
from labelproof.experiments.comparison import compare_runs, find_unfinished, read_records
from labelproof.report.comparison import COMPARISONS

__all__ = ["compare"]


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...", help="Folders of runs or of records, with all below them, or runs."
        ),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(COMPARISONS)}.", show_default="as --output is called, else markdown"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A file to write it to.", show_default="none: print it")
    ] = None,
) -> None:
    """Compare runs: what they differ in, and what they come to, over their seeds.

    Two losses with three seeds each, on data of your own:

        for seed in 1 2 3; do for loss in ce ce+sr; do
          labelproof train --data photos/ --loss $loss --seed $seed --output runs/$loss-$seed
        done; done

        labelproof compare runs/

    Runs that differ in nothing but the seed are one row: mean, standard deviation and number of
    seeds, of the accuracy after the last epoch. Beside it are the settings that other rows have
    otherwise, and how far a row is behind the first one of the same data and noise, seed by seed.
    Where the data have no test part the accuracy is that on held-out labels, which may be wrong
    themselves. Runs that are not finished are left out, and named on the error stream.
    """
    chosen = choose_format(format, output, COMPARISONS)
    records = read_records(*folders)
    if unfinished := find_unfinished(*folders):
        listed = few([str(folder) for folder in unfinished])
        typer.echo(f"{count(len(unfinished), 'run')} not finished, left out: {listed}", err=True)
    if not records:
        listed = ", ".join(str(folder) for folder in folders)
        raise ValueError(f"{listed}: expected finished runs or their records, found none")
    write_or_print(COMPARISONS[chosen](compare_runs(records)), output)
