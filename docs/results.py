"""Fills the pages under docs/reproduction with what the records say, whenever the docs are built.

Nothing measured is typed into these pages. They have places instead:

{{ summary }}, {{ outside }}, {{ missing }}    which cells of all tables reproduce
{{ table symmetric mnist }}                    a table
{{ figure accuracy mnist }}                    a picture
{{ ours symmetric mnist CE+SR 0.8 }}           a cell as measured; so for paper and difference
{{ rate symmetric mnist CE 0.8 }}              the share of wrong labels as it came out
{{ ours symmetric mnist NLNL 0.8 epochs=720 }} the same with settings that differ from the table's
{{ under asymmetric:0.4 cifar10 CE }}          a method as measured with noise that no table has
{{ after 40 symmetric mnist NLNL 0.8 }}        a cell's accuracy after so many epochs; settings too
{{ embeddings mnist symmetric }}               what networks see, from records/embeddings
{{ records }}                                  how many records there are
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from labelproof.data.published import known_dataset
from labelproof.experiments.figures import SWEEPS, read_embeddings
from labelproof.experiments.grids import plan
from labelproof.experiments.presets import paper_configuration
from labelproof.experiments.records import RecordStore
from labelproof.experiments.tables import compare_all, make_table, moments
from labelproof.report.figures import FIGURES, draw_embeddings, draw_figure, save_figure
from labelproof.report.page import DATASETS
from labelproof.report.tables import (
    list_missing,
    list_outside,
    share_of_cells,
    signed,
    table_markdown,
    with_spread,
)
from labelproof.training.configuration import Configuration

__all__ = ["draw", "fill", "telling_cells"]

PLACE = re.compile(r"\{\{ ([^{}]+) \}\}")
NOTHING = "(no records yet)"
NOISES = ("symmetric", "asymmetric")
SUMMARIES = {
    "accuracy": "Accuracy of every method by epoch, a panel for each kind and rate of noise",
    "sparse": "Sparse rate and accuracy by epoch, symmetric noise 0.8",
    "memorisation": "Shares of right and wrong labels that are fitted, CE against CE+SR; "
    "not in the paper",
    **{
        name: f"Accuracy by epoch for different {symbol}, symmetric noise 0.6"
        for name, symbol in SWEEPS.items()
    },
}
TELLING = (
    ("mnist", "symmetric", "0.8"),
    ("cifar10", "symmetric", "0.6"),
    ("cifar10", "symmetric", "0.8"),
    ("cifar10", "asymmetric", "0.4"),
    ("cifar100", "symmetric", "0.6"),
)
"""Cells that say in a few lines what the method does, for the README."""


def fill(markdown: str, store: RecordStore, *, page: str) -> str:
    """Put the results into a page.

    >>> nothing = RecordStore(Path("nowhere"))
    >>> fill("{{ paper symmetric mnist CE 0.8 }}", nothing, page="page.md")
    '22.66 ± 0.61'
    >>> fill("It is {{ ours symmetric mnist CE 0.8 }}.", nothing, page="page.md")
    'It is (no records yet).'
    """

    def replace(match: re.Match[str]) -> str:
        name, *arguments = match[1].split()
        try:
            return PLACES[name](store, *arguments)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{page}: cannot fill in {match[0]} ({error})") from error

    return PLACE.sub(replace, markdown)


def telling_cells(store: RecordStore) -> str:
    """The README's table: the same network and labels, with and without the penalty.

    >>> print(telling_cells(RecordStore(Path("nowhere"))).splitlines()[2])
    | MNIST, symmetric 0.8 | (no records yet) | 22.66 | (no records yet) | 98.06 |
    """
    lines = ["| wrong labels | CE | paper | CE+SR | paper |", "|---|---:|---:|---:|---:|"]
    for dataset, noise, rate in TELLING:
        cells = [f"{DATASETS[dataset]}, {noise} {rate}"]
        for method in ("CE", "CE+SR"):
            cell = _cell(store, noise, dataset, method, rate)
            cells.append(f"{cell.mean:.2f}" if cell.n else NOTHING)
            cells.append(f"{cell.paper_mean:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(store: RecordStore, folder: Path, is_stale: Callable[[Path], bool]) -> Iterable[Path]:
    """Draw every figure that has records into a folder; yield those that were drawn."""
    folder.mkdir(exist_ok=True)
    for name, kind in FIGURES.items():
        for dataset in kind.datasets:
            path = folder / _picture(name, dataset)
            if is_stale(path) and _has_records(store, name, dataset):
                save_figure(draw_figure(store, name, dataset), path)
                yield path
    for file in sorted((store.folder / "embeddings").glob("*.npz")):
        for noise in NOISES:
            path = folder / _view(file.stem, noise)
            found = read_embeddings(file, noise) if is_stale(path) else []
            if found:
                title = f"Features of {len(found[0].labels):,} test images, {DATASETS[file.stem]}"
                classes = known_dataset(file.stem).class_names
                save_figure(draw_embeddings(found, title=title, class_names=classes), path)
                yield path


def _table(store: RecordStore, table: str, dataset: str) -> str:
    made = make_table(store, table, dataset)
    if not made["n"].any():
        return f"{DATASETS[dataset]}: {NOTHING[1:-1]}."
    return table_markdown(made)


def _figure(store: RecordStore, name: str, dataset: str) -> str:
    summary = SUMMARIES[name]
    if not _has_records(store, name, dataset):
        return f"{summary}, {DATASETS[dataset]}: {NOTHING[1:-1]}."
    picture = f"../generated/{_picture(name, dataset)}"
    # A link to itself, since panels that are small on the page are large by themselves.
    return f"[![{summary}, {DATASETS[dataset]}]({picture})]({picture})"


def _has_records(store: RecordStore, name: str, dataset: str) -> bool:
    return any(any(each.lines.values()) for each in FIGURES[name].panels(store, dataset))


def _picture(name: str, dataset: str) -> str:
    return f"{name}-{dataset}.svg"


def _embeddings(store: RecordStore, dataset: str, noise: str) -> str:
    summary = f"What networks see, {noise} noise, {DATASETS[dataset]}"
    file = store.folder / "embeddings" / f"{dataset}.npz"
    if not file.exists() or not read_embeddings(file, noise):
        return f"{summary}: {NOTHING[1:-1]}."
    picture = f"../generated/{_view(dataset, noise)}"
    return f"[![{summary}]({picture})]({picture})"


def _view(dataset: str, noise: str) -> str:
    # Thirty thousand points: as pixels a tenth of what they would take as shapes.
    return f"embeddings-{dataset}-{noise}.png"


def _cell(store: RecordStore, table: str, dataset: str, method: str, column: str) -> Any:
    (cell,) = make_table(store, table, dataset, methods=[method], columns=[column]).itertuples()
    return cell


def _ours(
    store: RecordStore, table: str, dataset: str, method: str, column: str, *settings: str
) -> str:
    return _measured(store, _changed(table, dataset, method, column, settings))


def _after(
    store: RecordStore,
    epoch: str,
    table: str,
    dataset: str,
    method: str,
    column: str,
    *settings: str,
) -> str:
    changed = _changed(table, dataset, method, column, settings)
    return _measured(store, changed, epoch=int(epoch))


def _under(store: RecordStore, noise: str, dataset: str, method: str) -> str:
    return _measured(store, paper_configuration(dataset, method, noise=noise))


def _changed(
    table: str, dataset: str, method: str, column: str, settings: Sequence[str]
) -> Configuration:
    """A cell's run with settings in place of its own, each as `NAME=VALUE`."""
    (run,) = plan(table, dataset, methods=[method], columns=[column])
    own = run.configuration.as_values()
    changes = {
        name: type(own[name])(value)
        for name, value in (setting.split("=", 1) for setting in settings)
    }
    return dataclasses.replace(run.configuration, **changes)


def _measured(store: RecordStore, configuration: Configuration, *, epoch: int = 0) -> str:
    """What the seeds of a configuration came to, after an epoch or else at their end."""
    records = store.seeds(configuration)
    if not records:
        return NOTHING
    values = [record.curve["test_accuracy"][epoch - 1] for record in records]
    seeds = "1 seed" if len(values) == 1 else f"{len(values)} seeds"
    return f"{with_spread(*moments(values))} ({seeds})"


def _paper(store: RecordStore, *place: str) -> str:
    cell = _cell(store, *place)
    if math.isnan(cell.paper_mean):
        raise ValueError("the paper has no such cell")
    return with_spread(cell.paper_mean, cell.paper_std)


def _difference(store: RecordStore, *place: str) -> str:
    difference = _cell(store, *place).difference
    return NOTHING if math.isnan(difference) else signed(difference)


def _rate(store: RecordStore, table: str, dataset: str, method: str, column: str) -> str:
    (run,) = plan(table, dataset, methods=[method], columns=[column])
    rates = [record.noise_rate for record in store.seeds(run.configuration)]
    return ", ".join(f"{100 * rate:.2f}%" for rate in rates) or NOTHING


def _count(store: RecordStore) -> str:
    return str(sum(1 for _ in store))


PLACES: dict[str, Callable[..., str]] = {
    "summary": lambda store: share_of_cells(compare_all(store)),
    "outside": lambda store: list_outside(compare_all(store)),
    "missing": lambda store: list_missing(compare_all(store)),
    "table": _table,
    "figure": _figure,
    "embeddings": _embeddings,
    "ours": _ours,
    "under": _under,
    "after": _after,
    "paper": _paper,
    "difference": _difference,
    "rate": _rate,
    "records": _count,
}
"""What a place can ask for."""
