"""`labelproof compare`: runs of one's own side by side, over their seeds."""

from __future__ import annotations

from pathlib import Path

import typer

from labelproof.cli.options import takes
from labelproof.cli.table import choose_format, write_or_print
from labelproof.data.notices import count, few
from labelproof.experiments.comparison import compare_runs, find_unfinished, read_records
from labelproof.report.tables import COMPARISONS


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
    test split the accuracy is on held-out labels, which may be wrong themselves. Unfinished runs
    are left out and listed on stderr.

    Args:
        folders: Runs, or folders of runs or records, with subfolders.
        format: markdown, latex or csv; by default the one that --output ends in, else markdown.
        output: The file to write; by default stdout.
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
