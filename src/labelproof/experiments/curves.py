"""The curves behind each figure, by epoch, from records: data only, nothing is drawn here.

Every function takes the store of the records and a dataset. `methods` are rows of the tables, or
losses as text; none are the paper's. `columns` are those of the tables; none are all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labelproof.experiments.grids import GRIDS, Names, PlannedRun, choose_rows, plan
from labelproof.experiments.records import RecordStore
from labelproof.ranges import choose

SPARSE_METHODS = ("CE", "FL", "GCE", "CE+SR", "FL+SR", "GCE+SR")
"""What the paper's figure of sparse rates compares."""

SWEEPS = {"sweep-lambda": "λ", "sweep-tau": "τ", "sweep-p": "p"}
"""Sweeps by name, and what they sweep."""

FITTED = {
    "clean_fitted": "right labels fitted",
    "wrong_fitted": "wrong labels fitted (memorised)",
    "wrong_corrected": "wrong labels, true class predicted",
}
"""Shares of the training labels that a record has, by metric."""


@dataclass(frozen=True)
class Line:
    """A metric by epoch.

    Attributes:
        name: What a legend calls it.
        seeds: One list of values for each seed; none without records.
    """

    name: str
    seeds: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Panel:
    """One small picture of a figure.

    Attributes:
        title: What it is of.
        lines: All that belong in it, those without records too.
        epochs: How long the runs train; a line may be longer.
    """

    title: str
    lines: Sequence[Line]
    epochs: int

    @property
    def missing(self) -> list[str]:
        """The lines that have no records."""
        return [line.name for line in self.lines if not line.seeds]


def accuracy_panels(
    store: RecordStore, dataset: str, *, methods: Names = (), columns: Names = ()
) -> list[Panel]:
    """Test accuracy of every method: without noise, then for each rate of both kinds of it.

    A column such as `0.4` stands for both kinds of noise, `sym-0.4` and `asym-0.4` for one.

    Example:
        >>> from pathlib import Path
        >>> nothing = RecordStore(Path("nowhere"))
        >>> panels = accuracy_panels(nothing, "mnist")
        >>> [panel.title for panel in panels][:3], len(panels)
        (['no noise', 'symmetric 0.2', 'symmetric 0.4'], 9)
        >>> chosen = accuracy_panels(nothing, "mnist", methods=["mae"], columns=["0.4", "sym-0.8"])
        >>> [panel.title for panel in chosen]
        ['symmetric 0.4', 'symmetric 0.8', 'asymmetric 0.4']
    """
    places = [
        (kind, short, rate)
        for kind, short in (("symmetric", "sym"), ("asymmetric", "asym"))
        for rate in GRIDS[kind].columns
    ]
    known = dict.fromkeys(name for _, short, rate in places for name in (rate, f"{short}-{rate}"))
    taken = {choose("column", column, known) for column in columns}
    panels = []
    for kind, short, rate in places:
        if not taken or taken & {rate, f"{short}-{rate}"}:
            title = f"{kind} {rate}" if float(rate) else "no noise"
            runs = plan(kind, dataset, columns=[rate], methods=methods)
            panels.append(_panel(store, title, runs, "test_accuracy"))
    return panels


def sparse_panels(
    store: RecordStore, dataset: str, *, methods: Names = (), columns: Names = ()
) -> list[Panel]:
    """Sparse rate of the training outputs, and test accuracy, at symmetric noise 0.8 or others."""
    panels = []
    for rate in columns or ("0.8",):
        runs = plan("symmetric", dataset, columns=[rate], methods=methods or SPARSE_METHODS)
        noise = f"symmetric {rate}" if float(rate) else "no noise"
        panels += [
            _panel(store, f"sparse rate (%), {noise}", runs, "sparse_rate"),
            _panel(store, f"test accuracy (%), {noise}", runs, "test_accuracy"),
        ]
    return panels


def sweep_panels(
    sweep: str,
    store: RecordStore,
    dataset: str = "cifar10",
    *,
    methods: Names = (),
    columns: Names = (),
) -> list[Panel]:
    """Test accuracy for each value that one of `SWEEPS` tries, a panel for each loss.

    Methods are losses with their regulariser, such as `gce(q=0.5)+SR`.
    """
    symbol = SWEEPS[choose("sweep", sweep, SWEEPS)]
    panels = []
    for method in choose_rows(sweep, dataset, methods):
        runs = plan(sweep, dataset, methods=[method], columns=columns)
        names = [f"{symbol} = {run.cell.column}" for run in runs]
        title = (
            method.replace("(tau=", ", τ = ").replace(")", "") if "SR(tau=" in method else method
        )
        panels.append(_panel(store, title, runs, "test_accuracy", names))
    return panels


def memorisation_panels(
    store: RecordStore, dataset: str, *, methods: Names = (), columns: Names = ()
) -> list[Panel]:
    """What becomes of right and of wrong labels, with cross entropy and with CE+SR.

    A panel for each rate of symmetric noise with cross entropy, then the same with CE+SR, or with
    other methods in the place of these two.
    """
    known = GRIDS["symmetric"].columns[1:]
    rates = [choose("column", column, known) for column in columns] or known
    panels = []
    for method in choose_rows("symmetric", dataset, methods or ("CE", "CE+SR")):
        for rate in rates:
            (run,) = plan("symmetric", dataset, columns=[rate], methods=[method])
            lines = [Line(name, _values(store, run, metric)) for metric, name in FITTED.items()]
            panels.append(Panel(f"{method}, symmetric {rate}", lines, run.configuration.epochs))
    return panels


def _panel(
    store: RecordStore,
    title: str,
    runs: Sequence[PlannedRun],
    metric: str,
    names: Sequence[str] = (),
) -> Panel:
    names = names or [run.cell.method for run in runs]
    values = [_values(store, run, metric) for run in runs]
    lines = [Line(name, seeds) for name, seeds in zip(names, values, strict=True)]
    return Panel(title, lines, runs[0].configuration.epochs)


def _values(store: RecordStore, run: PlannedRun, metric: str) -> list[list[float]]:
    """The metric by epoch of each seed, in percent."""
    scale = 1 if metric.endswith("_accuracy") else 100
    records = store.seeds(run.configuration)
    return [
        [scale * value for value in record.curve[metric]]
        for record in records
        if metric in record.curve
    ]
