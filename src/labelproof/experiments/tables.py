"""Tables from records: measured, published, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

from labelproof.data.notices import count
from labelproof.experiments.grids import GRIDS, Cell, Names, choose_rows, plan, plan_all
from labelproof.experiments.presets import Published, published
from labelproof.experiments.records import RecordStore, is_of_published_data, settings_key

BEST = 3
"""Number of methods that are marked as best in a column, as in the paper."""
LEAST = 1.0
"""Least tolerance, in points: about the effect of another machine, library or seed."""


@dataclass(frozen=True)
class Entry:
    """A cell, measured and published.

    Attributes:
        cell: The cell.
        accuracies: Test accuracy of the last epoch by seed, percent; empty without records.
        published: The paper's result, if it has this cell; a later paper's in a later table.
        best: Test accuracy of the best epoch by seed. Choosing that epoch uses the test set, so it
            is an upper bound; some papers report it.

    Example:
        >>> cell = Cell("symmetric", "mnist", "CE", "0.8")
        >>> entry = Entry(cell, {1: 22.0, 2: 23.0}, Published(22.66, 0.61))
        >>> entry.mean, entry.n, round(entry.difference, 2), entry.reproduces
        (22.5, 2, -0.16, True)
        >>> Entry(cell, {1: 25.22}, Published(22.66, 1.28)).tolerance
        2.56
    """

    cell: Cell
    accuracies: Mapping[int, float]
    published: Published | None
    best: Mapping[int, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of seeds measured."""
        return len(self.accuracies)

    @property
    def mean(self) -> float | None:
        """Mean over the seeds."""
        return mean(self.accuracies.values()) if self.accuracies else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation over the seeds; `None` for a single one."""
        return stdev(self.accuracies.values()) if self.n > 1 else None

    @property
    def difference(self) -> float | None:
        """Measured minus published; `None` if one is missing."""
        if self.mean is None or self.published is None:
            return None
        return self.mean - self.published.mean

    @property
    def tolerance(self) -> float:
        """Points by which it may differ from the paper: 1, or twice the spread if that is more.

        The spread is the root of the sum of both variances, the paper's and ours. An unknown
        deviation counts as 0: if the paper gives none, or with a single seed.
        """
        paper = (self.published.std if self.published else None) or 0.0
        return max(LEAST, 2 * math.hypot(paper, self.std or 0.0))

    @property
    def reproduces(self) -> bool | None:
        """Whether the difference is within the tolerance; `None` if there is none."""
        if self.difference is None:
            return None
        # Both numbers have two decimals; a difference of 1 must not fail by a rounding error.
        return round(abs(self.difference), 6) <= round(self.tolerance, 6)


@dataclass(frozen=True)
class ResultTable:
    """One table for one dataset.

    Attributes:
        table: One of `GRIDS`.
        dataset: The dataset's name.
        methods: Rows, in order.
        columns: Columns, in order.
        entries: One for each row and column.
    """

    table: str
    dataset: str
    methods: Sequence[str]
    columns: Sequence[str]
    entries: Mapping[tuple[str, str], Entry]

    def __getitem__(self, place: tuple[str, str]) -> Entry:
        return self.entries[place]

    def is_published(self, method: str) -> bool:
        """Whether the paper has this row."""
        return any(self[method, column].published is not None for column in self.columns)

    @property
    def within(self) -> list[Entry]:
        """Published cells that reproduce."""
        return self._published(reproduced=True)

    @property
    def outside(self) -> list[Entry]:
        """Published cells that do not."""
        return self._published(reproduced=False)

    @property
    def missing(self) -> list[Entry]:
        """Published cells without records."""
        return self._published(reproduced=None)

    @property
    def measured(self) -> int:
        """Number of published cells with records."""
        return len(self.within) + len(self.outside)

    @property
    def cells(self) -> int:
        """Number of published cells."""
        return self.measured + len(self.missing)

    def _published(self, *, reproduced: bool | None) -> list[Entry]:
        cells = [entry for entry in self.entries.values() if entry.published is not None]
        return [entry for entry in cells if entry.reproduces is reproduced]

    def best(self, column: str) -> set[str]:
        """The methods with the highest means of a column, up to three, but never all of them.

        Means that are equal to two decimals, as shown, are best together.
        """
        means = {
            method: round(value, 2)
            for method in self.methods
            if (value := self[method, column].mean) is not None
        }
        places = min(BEST, len(means) - 1)
        if places < 1:
            return set()
        least = sorted(means.values(), reverse=True)[places - 1]
        chosen = {method for method, value in means.items() if value >= least}
        return chosen if len(chosen) < len(means) else set()


def make_table(
    store: RecordStore, table: str, dataset: str, *, methods: Names = (), columns: Names = ()
) -> ResultTable:
    """Look up the records of every cell, with all seeds there are.

    `methods` are rows, by name or as losses. By default, rows and columns are the paper's.

    Example:
        >>> table = make_table(RecordStore(Path("nowhere")), "comparison", "cifar10")
        >>> table.methods
        ['CE', 'Co-teaching', 'PHuber-CE', 'CE+SR']
        >>> table["CE+SR", "sym-0.6"].n, table["CE+SR", "sym-0.6"].published
        (0, Published(mean=78.18, std=None))
    """
    known = published(table, dataset)
    entries = {}
    for run in plan(table, dataset, methods=methods, columns=columns):
        records = store.seeds(run.configuration)
        entries[run.cell.method, run.cell.column] = Entry(
            run.cell,
            {record.configuration["seed"]: record.final_accuracy for record in records},
            known.get(run.cell.method, {}).get(run.cell.column),
            {each.configuration["seed"]: max(each.curve["test_accuracy"]) for each in records},
        )
    rows = choose_rows(table, dataset, methods)
    taken = dict.fromkeys(column for _, column in entries)
    return ResultTable(table, dataset, rows, list(taken), entries)


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
            f"records: there is no folder {folder}; 'labelproof bench' makes one, such as "
            "'labelproof bench symmetric --dataset mnist'"
        )
    return RecordStore(folder)


def compare_all(store: RecordStore) -> list[ResultTable]:
    """All tables that the paper has numbers for, dataset by dataset.

    Example:
        >>> from pathlib import Path
        >>> [comparison.measured for comparison in compare_all(RecordStore(Path("nowhere")))]
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    return [
        make_table(store, name, dataset)
        for name, grid in GRIDS.items()
        for dataset in grid.datasets
        if published(name, dataset) and not grid.later
    ]
