"""By what else samples may be known than by the names that an audit gives them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from labelproof.audit.row_matching import SampleFiles
from labelproof.data.dataset import Dataset
from labelproof.data.encoded import SUFFIXES
from labelproof.data.listing import read_beside
from labelproof.data.loading import TABLES
from labelproof.data.sample_names import sample_folder, sample_paths
from labelproof.data.table_kind import COLUMNS
from labelproof.data.tables import read_table

__all__ = ["find_files", "known_ids", "name_files"]


def known_ids(
    dataset: Dataset, samples: Sequence[str], column: str, data: str | os.PathLike[str]
) -> list[list[str]]:
    r"""What the data's table has in columns that are called as that of the ids.

    Upper and lower case do not matter. For images that are not here, any name that a column of
    files may have is as good as another; those that are here are known by their paths.

    Args:
        dataset: What was read from the data.
        samples: What each sample is called.
        column: The column of the predictions that holds the ids.
        data: Where the samples were read from.

    Example:
        >>> from labelproof.data.loading import load_dataset
        >>> table = getfixture("tmp_path") / "texts.csv"
        >>> _ = table.write_text("Key,label\nk7,a\nk8,b\nk9,a\nk10,b\n")
        >>> dataset = load_dataset(table, label="label", features=False)
        >>> known_ids(dataset, dataset.train.places, "key", table)
        [['k7', 'k8', 'k9', 'k10']]
    """
    table = Path(data).expanduser()
    if table.suffix.lower() not in TABLES or not table.exists():
        return []
    paths = sample_paths(dataset.train)
    word = column.casefold()
    words = COLUMNS["path"] if paths is None and word in COLUMNS["path"] else (word,)
    found = [name for name in read_table(table).columns if name.strip().casefold() in words]
    found.sort(key=lambda name: (name.strip() != column, name.strip().casefold() != word))
    known: list[list[str]] = []
    for name in dict.fromkeys(found):
        if paths is not None:
            cells, keys = read_beside(table, name), paths
        else:
            cells = {row.place: row.cells[0] for row in read_table(table).read([name])}
            keys = samples
        known.append([cells.get(key, "") for key in keys])
    return [names for names in known if any(names)]


def find_files(
    dataset: Dataset, data: str | os.PathLike[str], predictions: str
) -> SampleFiles | None:
    """The files of a dataset's samples, and where paths in a table of predictions may begin.

    Args:
        dataset: What was read from the data.
        data: Where it was read from.
        predictions: The table.

    Example:
        >>> import numpy as np
        >>> from labelproof.data.dataset import Split
        >>> from labelproof.data.images import ImageFiles
        >>> train = Split(ImageFiles(["/data/photos/a.png"]), np.array([0]))
        >>> dataset = Dataset("photos", {"train": train}, ("cat", "dog"), (0.0,), (1.0,))
        >>> files = find_files(dataset, "/data/photos.csv", "/tables/p.csv")
        >>> files.paths, files.folders[0], files.folders[2]
        (['/data/photos/a.png'], '/data', '/tables')
    """
    paths = sample_paths(dataset.train)
    if paths is None:
        return None
    beside = os.path.dirname(os.path.abspath(predictions))
    return SampleFiles(paths, (sample_folder(data), os.getcwd(), beside))


def name_files(column: str, ids: Sequence[str]) -> bool:
    """Whether ids are plainly meant to name image files.

    >>> name_files("File", ["7"]), name_files("who", ["7.png"]), name_files("who", ["7"])
    (True, True, False)
    """
    if column.casefold() in COLUMNS["path"]:
        return True
    return any(os.path.splitext(name)[1].lower() in SUFFIXES for name in ids)
