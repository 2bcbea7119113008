"""What is said about a fit before it begins and when it is over."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelproof.data.dataset import Dataset
from labelproof.data.notices import count, few, readable
from labelproof.data.table import table_stem
from labelproof.intervals import wilson_interval
from labelproof.training.configuration import Configuration
from labelproof.training.files import read_arrays
from labelproof.training.record import RunRecord
from labelproof.training.run_folder import PREDICTIONS

__all__ = ["describe_data", "describe_end", "describe_start", "of_parts", "stem_of"]


_NAMED = 3
"""Classes that are named, the largest."""
_HANDFUL = 20
"""Samples below which a class is named, too, if it is the smallest."""


def stem_of(data: str, labels: Path | None = None) -> str:
    """What folders of runs on some data are called after.

    With corrected labels it is another name: what was made of the others stays, to be compared.

    >>> stem_of("tables/customers.csv"), stem_of("photos/")
    ('customers', 'photos')
    >>> stem_of("photos/", Path("reviewed.csv")), stem_of("customers.csv.gz")
    ('photos-reviewed', 'customers')
    """
    place = Path(data)
    stem = table_stem(place) if place.suffix and not place.is_dir() else place.resolve().name
    return stem if labels is None else f"{stem}-{table_stem(labels)}"


def describe_data(dataset: Dataset) -> str:
    """What there is to learn from.

    >>> from labelproof.data import load_digits
    >>> describe_data(load_digits())
    'Data: 1,347 images, 10 classes (3 137, 1 136, 4 136 and 7 more)'
    """
    labels = np.bincount(dataset.train.labels, minlength=dataset.num_classes)
    pairs = sorted(
        zip(labels.tolist(), dataset.class_names, strict=True), key=lambda pair: -pair[0]
    )
    sizes = [f"{name} {size:,}" for size, name in pairs]
    what = "row" if dataset.tabular else "image"
    classes = count(dataset.num_classes, "class", "classes")
    # Of a class with a handful of samples little can be learned, and less be told.
    hidden = len(pairs) > _NAMED and pairs[-1][0] < _HANDFUL
    rare = f"; fewest: {readable(sizes[-1])}" if hidden else ""
    told = f"Data: {count(len(dataset.train), what)}, {classes} ({few(sizes, shown=_NAMED)}{rare})"
    if dataset.group is None or dataset.train.groups is None:
        return told
    groups = count(len(np.unique(dataset.train.groups)), "group")
    return f"{told}\nKept together: {groups} by {readable(dataset.group)}"


def of_parts(dataset: Dataset, names: Sequence[str]) -> str:
    """How many samples some parts of a dataset have, for those that are left alone.

    >>> from labelproof.data import load_digits
    >>> of_parts(load_digits(), ["test"])
    '450 images of test'
    """
    what = "row" if dataset.tabular else "image"
    sizes = [count(len(dataset.splits[name]), what) for name in names]
    return ", ".join(f"{size} of {readable(name)}" for size, name in zip(sizes, names, strict=True))


def describe_start(dataset: Dataset, configuration: Configuration, *, auto: bool) -> list[str]:
    """What the data are, and what is going to be done with them."""
    what = "row" if dataset.tabular else "image"
    held = round(configuration.validation * len(dataset.train))
    loss = "a loss that is chosen first" if auto else configuration.loss
    lines = [
        describe_data(dataset),
        f"Recipe: {configuration.network}, {count(configuration.epochs, 'epoch')} in batches "
        f"of {configuration.batch_size}, {loss}",
        f"Held out: about {count(held, what)} to validate on, by their labels as they are",
    ]
    if "test" in dataset.splits:
        lines.append(f"Measured on: {of_parts(dataset, ['test'])}, never learned from")
    unused = [name for name in dataset.splits if name not in ("train", "test")]
    if unused:
        lines.append(f"Not used: {of_parts(dataset, unused)}")
    return lines


def describe_end(
    record: RunRecord, folder: Path, dataset: Dataset, *, corrected: bool = False
) -> str:
    """What the run came to, in words, and what to do next.

    Args:
        record: Of the finished run.
        folder: Where it is.
        dataset: What it learned from.
        corrected: Whether its labels stand in place of those that the data came with.

    Raises:
        ValueError: A file of the run is damaged or missing.
    """
    held = _count_held(folder)
    accuracy = record.curve["validation_accuracy"][-1]
    low, high = (100 * bound for bound in wilson_interval(round(accuracy * held / 100), held))
    what = "row" if dataset.tabular else "image"
    share = f"the labels of {accuracy:.1f}% of {held:,} held-out {what}s are predicted"
    if held == 1:
        share = f"the label of the one held-out {what} is {'not ' * (not accuracy)}predicted"
    came = "the corrected ones" if corrected else "as they came"
    counts = f"wrong ones {'still ' * corrected}among them count against the network"
    if record.noise_rate:
        # Only of what was made wrong on purpose it is known how much it is.
        wrong = 100 * record.noise_rate
        came = f"as they came, but for {wrong:.0f}% that were changed"
        counts = f"a network that is always right would be at about {100 - wrong:.0f}%"
    lines = [
        f"Validation: {share} (95% interval: {low:.1f}% to {high:.1f}%).",
        f"Those labels are {came}, so {counts}.",
    ]
    if "test_accuracy" in record.curve:
        lines.append(
            f"Test: {record.curve['test_accuracy'][-1]:.1f}% of {len(dataset.test):,} are "
            "predicted as they are labelled."
        )
    quoted = shlex.quote(str(folder))
    new = "NEW.csv" if dataset.tabular else "NEW-IMAGES"
    column = None if dataset.columns is None else dataset.columns.row_number
    if column is not None:
        new += f" --id {shlex.quote(column)}"
    lines += [
        f"Run: {folder} (weights, classes and what is done to inputs)",
        f"Next: labelproof predict {quoted} {new}",
    ]
    return "\n".join(lines)


def _count_held(folder: Path) -> int:
    """How many samples a finished run held out."""
    try:
        return len(read_arrays(folder / PREDICTIONS, ["held"])["held"])
    except FileNotFoundError:
        raise ValueError(f"{folder / PREDICTIONS} is missing; start anew with --fresh") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder}: {error}; start anew with --fresh") from None
