"""Tables from records: measured, published, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd

from labelproof.data.notices import count
from labelproof.experiments.grids import GRIDS, Names, plan, plan_all
from labelproof.experiments.presets import published
from labelproof.experiments.records import RecordStore, is_of_published_data, settings_key

BEST = 3
"""Number of methods that are marked as best in a column, as in the paper."""
LEAST = 1.0
"""Least tolerance, in points: about the effect of another machine, library or seed."""


def make_table(
    store: RecordStore, table: str, dataset: str, *, methods: Names = (), columns: Names = ()
) -> pd.DataFrame:
    """Look up the records of every cell, with all seeds there are.

    Args:
        store: The records.
        table: One of `GRIDS`.
        dataset: One of the table's datasets.
        methods: Rows, by name or as losses; by default the paper's.
        columns: Columns; by default the paper's.

    Returns:
        A row for each cell, column by column; what is missing is NaN:

        - `table`, `dataset`, `method` and `column`: the cell.
        - `mean` and `std`: test accuracy of the last epoch over the `n` seeds in `seeds`, percent.
        - `paper_mean` and `paper_std`: the paper's result; a later paper's in a later table.
        - `best_mean` and `best_std`: test accuracy of the best epoch. Choosing that epoch uses the
          test set, so it is an upper bound; some papers report it.
        - what `compare_cells` adds.

    Example:
        >>> table = make_table(RecordStore(Path("nowhere")), "comparison", "cifar10")
        >>> list(table["method"].unique())
        ['CE', 'Co-teaching', 'PHuber-CE', 'CE+SR']
        >>> table.loc[table["method"] == "CE+SR", ["column", "n", "paper_mean"]].head(1)
            column  n  paper_mean
        3  sym-0.6  0       78.18
    """
    known = published(table, dataset)
    cells = []
    for run in dict.fromkeys(plan(table, dataset, methods=methods, columns=columns)):
        records = store.seeds(run.configuration)
        last = moments([record.final_accuracy for record in records])
        best = moments([max(record.curve["test_accuracy"]) for record in records])
        paper = known.get(run.method, {}).get(run.column, (math.nan, math.nan))
        seeds = [record.configuration["seed"] for record in records]
        cells.append([*run[:4], *last, len(records), *paper, *best, seeds])
    names = [
        *("table", "dataset", "method", "column", "mean", "std", "n", "paper_mean", "paper_std"),
        *("best_mean", "best_std", "seeds"),
    ]
    # Without any deviation in the paper, its column would be one of objects.
    return compare_cells(pd.DataFrame(cells, columns=names).astype({"paper_std": float}))


def moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; NaN without values, and without a second one.

    >>> moments([22.0]), moments([22.0, 23.0])
    ((22.0, nan), (22.5, 0.7071067811865476))
    """
    return mean(values or [math.nan]), stdev(values) if len(values) > 1 else math.nan


def compare_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Add what was measured minus what was published, and the best methods of each column.

    Returns:
        The table with `difference`; `allowed`, the points by which a cell may differ from the
        paper: 1, or twice the spread if that is more; `agrees`, which no cell without a difference
        does; and `leads`: the highest means of a column, up to three, but never all of them.
    """
    table = table.assign(difference=table["mean"] - table["paper_mean"])
    # The spread is the root of the sum of both variances. An unknown deviation counts as 0: if the
    # paper gives none, or with a single seed.
    spread = np.hypot(table["paper_std"].fillna(0), table["std"].fillna(0))
    table["allowed"] = np.maximum(LEAST, 2 * spread)
    # Both numbers have two decimals; a difference of 1 must not fail by a rounding error.
    table["agrees"] = table["difference"].abs().round(6) <= table["allowed"].round(6)
    table["leads"] = table.groupby("column")["mean"].transform(_leads).astype(bool)
    return table


def _leads(means: pd.Series) -> pd.Series:
    shown = means.round(2)  # what looks equal leads together
    leads = shown.rank(method="min", ascending=False) <= min(BEST, shown.count() - 1)
    return leads & (leads.sum() < shown.count())


def further_methods(store: RecordStore, table: str, dataset: str) -> list[str]:
    """Losses that are not in the paper's tables and have records in this table's settings.

    Example:
        >>> further_methods(RecordStore(Path("nowhere")), "symmetric", "mnist")
        []
    """
    # The rows of other tables, such as the sweeps', have the same settings but for the loss.
    planned = [*plan_all(dataset, seeds=[1]), *plan(table, dataset)]
    known = {settings_key(run.configuration.as_values()) for run in planned}
    losses = dict.fromkeys(
        record.configuration["loss"]
        for record in store
        if record.configuration["data"] == dataset
        and settings_key(record.configuration) not in known
    )
    further = []
    for loss in losses:
        with suppress(ValueError):  # a sweep takes only what it can sweep
            runs = [run.configuration for run in plan(table, dataset, methods=[loss])]
            new = [run for run in runs if settings_key(run.as_values()) not in known]
            further += [loss] * any(store.seeds(run) for run in new)
    return further


def explain_left_out(store: RecordStore, table: str = "", dataset: str = "") -> str:
    """A warning about records that no cell, or no line of a figure, shows; or an empty text.

    Without a `table`, any number of epochs is right; without a `dataset`, it is about all.

    Example:
        >>> explain_left_out(RecordStore(Path("nowhere")), "symmetric", "mnist")
        ''
    """
    epochs = {run.configuration.epochs for run in plan(table, dataset)} if table else set()
    left_out = [
        record
        for record in store
        if record.configuration["data"] == (dataset or record.configuration["data"])
        and (
            not is_of_published_data(record)
            or (epochs and record.configuration["epochs"] not in epochs)
        )
    ]
    return (
        f"{count(len(left_out), 'record')} in {store.folder} left out: trained for another number "
        "of epochs, or on data of another size than the published ones"
        if left_out
        else ""
    )


def open_records(folder: Path) -> RecordStore:
    """The records under a folder, which has to exist.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"records: there is no folder {folder}; labelproof's repository has one (--records), "
            "and 'labelproof bench' makes one, such as 'labelproof bench symmetric --dataset mnist'"
        )
    return RecordStore(folder)


def compare_all(store: RecordStore) -> pd.DataFrame:
    """The cells of all tables that the paper has numbers for, each published; see `make_table`.

    Example:
        >>> int(compare_all(RecordStore(Path("nowhere")))["n"].sum())
        0
    """
    return pd.concat(
        [
            make_table(store, name, dataset).dropna(subset="paper_mean")
            for name, grid in GRIDS.items()
            for dataset in grid.datasets
            if published(name, dataset) and not grid.later
        ],
        ignore_index=True,
    )
