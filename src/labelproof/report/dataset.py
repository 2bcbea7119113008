"""The page of a dataset: its images, its wrong labels and the noise matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.data.images import EXACT_PIXELS
from labelproof.noise.sampling import NoisyLabels
from labelproof.report.audit_words import most_frequent
from labelproof.report.page import heat_picture, picture, render_words, write_page

SHOWN_CLASSES = 10
"""Most classes of which images are shown, drawn at random."""
COLUMNS = 10
"""Most images in a row."""
NUMBERED_CLASSES = 20
"""Classes up to which a matrix is shown with a number in each cell."""
SHOWN_CONFUSIONS = 12


def write_dataset_page(
    path: Path,
    dataset: Dataset,
    noisy: NoisyLabels | None,
    *,
    samples: int = 80,
    seed: int = 0,
    command: str = "",
) -> Path:
    """Write a page about a dataset's training labels, before and after noise.

    Args:
        path: The file; the page is self-contained.
        dataset: The data, whose training images are shown.
        noisy: The noisy training labels; `None` shows the labels as they are.
        samples: Number of images shown in all.
        seed: Random seed that draws them.
        command: The command that makes the page, shown at its end.

    Example:
        >>> from labelproof.data import load_digits
        >>> digits = load_digits()
        >>> page = write_dataset_page(getfixture("tmp_path") / "page.html", digits, None)
        >>> page.read_text()[:15]
        '<!doctype html>'
    """
    if samples < 1:
        raise ValueError(f"samples: expected at least 1, got {samples}")
    labels = dataset.train.labels
    given = labels if noisy is None else noisy.noisy
    rows = _rows(dataset, given, samples, np.random.default_rng(seed))
    matrices = {} if noisy is None else {"meant": noisy.matrix, "came": noisy.empirical_matrix}
    numbered = dataset.num_classes <= NUMBERED_CLASSES
    counted = {"before": labels, "after": given, "wrong": given[labels != given]}
    largest = [] if noisy is None or numbered else most_frequent(noisy.counts, SHOWN_CONFUSIONS)
    return write_page(
        Path(path),
        "dataset.html",
        title=f"{dataset.name}: labels {'as given' if noisy is None else 'with noise'}",
        dataset=dataset,
        finding=finding(dataset, noisy),
        noisy=noisy,
        rows=rows,
        columns=min(max(len(row["samples"]) for row in rows), COLUMNS),
        counts={
            name: np.bincount(part, minlength=dataset.num_classes).tolist()
            for name, part in counted.items()
        },
        matrices={name: matrix.tolist() for name, matrix in matrices.items()} if numbered else {},
        pictures={} if numbered else {name: heat_picture(each) for name, each in matrices.items()},
        confusions=largest,
        one_size=isinstance(dataset.train.images, np.ndarray),
        exact=max(dataset.image_shape[1:]) <= EXACT_PIXELS,
        short_names=max(map(len, dataset.class_names)) <= 3,
        seed=seed,
        command=command,
    )


def finding(dataset: Dataset, noisy: NoisyLabels | None) -> str:
    """How many labels are wrong, in a few sentences.

    >>> from labelproof.data import load_digits
    >>> from labelproof.noise import corrupt, symmetric_matrix
    >>> digits = load_digits()
    >>> finding(digits, corrupt(digits.train.labels, symmetric_matrix(10, 0.6), seed=1))
    '62.2% of the training labels are wrong: 838 of 1,347. The intended rate was 60.0%.'
    """
    sizes = np.bincount(dataset.train.labels, minlength=dataset.num_classes)
    values = {"data": dataset, "noisy": noisy, "sizes": sizes, "meant": None}
    # Human labels have no intended rate: their matrix is the empirical one.
    if noisy is not None and not np.array_equal(noisy.matrix, noisy.empirical_matrix):
        values["meant"] = float((1 - np.diag(noisy.matrix))[noisy.clean].mean())
    return render_words("findings.txt", part="dataset", **values)


def _rows(
    dataset: Dataset, given: NDArray[np.int64], samples: int, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """Rows of images with the same given label, the right ones first."""
    present = np.unique(given)
    classes = min(len(present), SHOWN_CLASSES, samples)
    chosen = np.sort(generator.choice(present, classes, replace=False))
    names, moved, rows = dataset.class_names, dataset.train.labels != given, []
    images: Any = dataset.train.images
    for label in chosen:
        members = np.flatnonzero(given == label)
        drawn = generator.choice(members, min(samples // classes, len(members)), replace=False)
        drawn = drawn[np.lexsort((drawn, moved[drawn]))]
        shown = [
            (picture(images[index]), names[dataset.train.labels[index]] if moved[index] else None)
            for index in drawn.tolist()
        ]
        row = {"name": names[label], "images": len(members), "wrong": int(moved[members].sum())}
        rows.append({**row, "samples": shown})
    return rows
