"""The folder of an audit.

audit.json    the findings as a whole, and how they were made
samples.npz   every sample's name, given label, suggestion and score
suspects.csv  the suspects, most suspicious first
report.html   the page
review.sqlite the decisions of a review
"""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelproof.audit.findings import LIKELIEST, Estimate, Findings
from labelproof.audit.predictions import name_rows
from labelproof.data.dataset import Dataset, restore_values
from labelproof.models.blend import BLEND
from labelproof.npz import read_npz
from labelproof.training.checkpoint import LaterFormatError
from labelproof.training.files import (
    read_json,
    remove_folder,
    write_arrays,
    write_bytes,
    write_text,
)

AUDIT = "audit.json"
SAMPLES = "samples.npz"
SUSPECTS = "suspects.csv"
PAGE = "report.html"
REVIEW = "review.sqlite"

SETTINGS = "settings.json"
"""The settings that an audit was started with."""
RUNS = "folds"
"""The folder of a cross-validation's runs, while they are needed."""

INSIDE = "audit"
"""The folder of a run's audit, within the run's folder."""

_VERSION = 1
_PLAIN = ("name", "data", "kind", "text_labels", "method", "options")
_ARRAYS = ("index", "marks", "duplicate_of", "outlier", "votes")
_TEXTS = ("samples", "left_out", "ids")
"""Fields of an audit: in `audit.json`, as arrays in `samples.npz`, and as packed texts there."""


@dataclass(frozen=True, repr=False)
class Audit:
    """The findings about a dataset, and how they were made.

    Attributes:
        name: The name of the data.
        data: Their path, or their name in the catalogue.
        kind: `"images"` or `"rows"`; `"unknown"` if only probabilities were given.
        class_names: A name for each class.
        text_labels: Whether labels are text even if they look like numbers.
        samples: A name for each sample: an image's path within the data, a row's number.
        index: Each sample's index in the training split, `(N)`.
        findings: The score and suggestion of each label, and estimates of the noise.
        method: How predictions were made, as plain values: `predictions` (`"cross-validation"`,
            `"run"` or `"given"`) and, if there are any, `folds`, `network`, `loss`, `epochs`.
        options: What is needed to read the data again: `label`, `labels`, `data_root`.
        left_out: Names of samples that a file of labels left out; they stay out.
        marks: A checksum of each row of a table, to notice if its line changes, `(N)`.
        duplicate_of: The sample that each one nearly repeats, or -1, `(N)`; `None` if not computed.
        outlier: Whether each sample is like no other one, `(N)`.
        votes: The class that each annotator gave each sample, `(N, A)`, -1 for none.
        annotators: The `annotator`, the number of their `labels` and the share of them that is
            right, `accuracy` from `low` to `high`; `None` without several annotators.
        ids: The id of each sample, if a column of ids was named.
        cells: The rows as text, by sample, if they were given in memory; else they are read again.
        dataset: The data, if they are loaded; they are not written.
        rows: The index of a Series of labels, which is not written either.
    """

    name: str
    data: str
    kind: str
    class_names: tuple[str, ...]
    samples: Sequence[str]
    index: NDArray[np.int64]
    findings: Findings
    text_labels: bool = False
    method: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    marks: NDArray[np.uint32] | None = None
    duplicate_of: NDArray[np.int64] | None = None
    outlier: NDArray[np.bool_] | None = None
    votes: NDArray[np.int64] | None = None
    annotators: pd.DataFrame | None = None
    ids: Sequence[str] = ()
    cells: pd.DataFrame | None = None
    dataset: Dataset | None = None
    rows: pd.Index | None = None

    @property
    def seen(self) -> bool:
        """Whether the labels were judged by a network that was trained on them."""
        return self.method.get("predictions") == "run"

    @property
    def trained(self) -> bool:
        """Whether networks were trained for it, which takes long; a blend takes seconds."""
        return self.method.get("predictions") == "cross-validation" and not self.blended

    @property
    def blended(self) -> bool:
        """Whether the predictions are by a blend of classifiers instead of a network."""
        return str(self.method.get("network")).startswith(BLEND)

    def __repr__(self) -> str:
        return f"Audit({self.name!r}, {self.findings!r})"

    @property
    def noise_rate(self) -> Estimate:
        """The share of labels that are wrong: `value`, `low` and `high`."""
        return self.findings.noise_rate

    @property
    def agreement(self) -> Estimate:
        """The share of labels that are predicted, out of sample unless by a single run."""
        return self.findings.agreement

    @property
    def suspects(self) -> pd.DataFrame:
        """The flagged labels, the most suspicious first.

        Their index is that of the DataFrame, or the Series of labels, that was audited; else the
        position in the training split. Classes that are whole numbers, or true and false, are no
        text there.
        """
        places, names = self.findings.suspects, np.array(self.class_names, dtype=object)
        samples = [self.samples[place] for place in places.tolist()]
        index, dataset = pd.Index(self.index[places], name="index"), self.dataset
        if dataset is not None and dataset.frame is not None:
            frame = dataset.frame
            named = name_rows(frame, self.data, tabular=self.kind == "rows")
            rows: Any = pd.Series(range(len(frame)), named)
            index = frame.index[rows[~rows.index.duplicated()][samples].to_numpy()]
        elif self.rows is not None:
            index = self.rows[self.index[places]]
        suspects = pd.DataFrame(
            {
                "sample": samples,
                "given": names[self.findings.given[places]],
                "suggested": names[self.findings.suggested[places]],
                "score": self.findings.score[places],
            },
            index=index,
            dtype=object,  # a file's name need not be UTF-8, which a column of text has to be
        )
        if len(self.ids):
            suspects.insert(0, "id", [self.ids[place] for place in places.tolist()])
        if self.duplicate_of is not None and self.outlier is not None:
            others = self.duplicate_of[places].tolist()
            suspects["duplicate_of"] = [self.samples[n] if n >= 0 else "" for n in others]
            suspects["outlier"] = self.outlier[places]
        if self.votes is not None:
            suspects["votes"] = [self.count_votes(place) for place in places.tolist()]
        labels = ["given", "suggested"]
        suspects = restore_values(suspects, labels, self.class_names, text=self.text_labels)
        return suspects.astype({"score": float})

    @property
    def disputed(self) -> int:
        """The number of samples that annotators gave different labels."""
        if self.votes is None:
            return 0
        least = np.where(self.votes < 0, len(self.class_names), self.votes).min(axis=1)
        return int((self.votes.max(axis=1) > least).sum())

    def count_votes(self, place: int) -> str:
        """How many annotators gave a sample each class, such as `cat 2, dog 1`."""
        votes = () if self.votes is None else self.votes[place]
        counts = Counter(self.class_names[vote] for vote in votes if vote >= 0)
        return ", ".join(f"{name} {times}" for name, times in counts.most_common())

    @property
    def matrix(self) -> pd.DataFrame:
        """Row `i`, column `j`: the share of samples truly of class `i` that are labelled `j`."""
        names = list(self.class_names)
        return pd.DataFrame(self.findings.transition, index=names, columns=names)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the page: a summary, tables, and the suspects to look at."""
        from labelproof.audit.samples import Samples, open_samples
        from labelproof.report.audit import write_audit_page

        samples = open_samples(self) if self.dataset is None else Samples(self, self.dataset)
        return write_audit_page(Path(path), self, samples)

    def _repr_html_(self) -> str:
        flagged = f"{len(self.findings.suspects):,} of {len(self.findings):,} labels flagged"
        first = self.suspects.head(10).round(3).map(lambda cell: html.escape(f"{cell}"))
        if self.kind == "images" and self.dataset is not None:
            from labelproof.audit.samples import Samples

            samples, places = Samples(self, self.dataset), self.findings.suspects[: len(first)]
            urls = [samples.picture_url(place, side=64) for place in places.tolist()]
            first.insert(0, "image", [f'<img height="64" src="{url}">' for url in urls])
        return (
            f"<p>{html.escape(self.name)}: {flagged}; wrong: {self.noise_rate.as_percent()}; "
            f"agreement {self.agreement.value:.0%}</p>"
            f"{first.to_html(index=False, escape=False)}"
        )

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write its files; `audit.json` last, so that a folder that has it is complete."""
        folder, findings = Path(folder), self.findings
        (folder / AUDIT).unlink(missing_ok=True)  # an earlier one does not fit the other files
        # File names need not be UTF-8; their bytes are written unchanged.
        write_bytes(folder / SUSPECTS, self.suspects_csv().encode("utf-8", "surrogateescape"))
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {each.name: getattr(findings, each.name) for each in fields(findings)}
        arrays = {name: each for name, each in arrays.items() if isinstance(each, np.ndarray)}
        arrays |= {name: _packed(list(getattr(self, name))) for name in _TEXTS}
        if self.cells is not None:
            arrays["cells"] = _packed(self.cells.to_dict("split"))
        write_arrays(folder / SAMPLES, arrays)
        values = {
            "version": _VERSION,
            **{name: getattr(self, name) for name in _PLAIN},
            "class_names": list(self.class_names),
            "noise_rate": asdict(findings.noise_rate),
            "temperature": findings.temperature,
            "shared_doubts": findings.shared_doubts,
            "agreement": asdict(self.agreement),
            "predicted": findings.predicted,
        }
        if self.annotators is not None:
            values["annotators"] = self.annotators.to_dict("list")
        write_text(folder / AUDIT, json.dumps(values, indent=1) + "\n")

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Audit:
        """The audit that `write` wrote.

        Raises:
            FileNotFoundError: There is no audit in the folder.
            LaterFormatError: A later version of labelproof wrote it.
            ValueError: Its files are damaged.
        """
        folder = Path(folder)
        path = folder / AUDIT
        if not path.exists():
            raise _no_audit(folder)
        try:
            values = read_json(path)
            if values["version"] > _VERSION:
                raise LaterFormatError(
                    f"{path}: expected version {_VERSION}, got {values['version']}; update "
                    "labelproof"
                )
            arrays = _read_samples(folder / SAMPLES, len(values["class_names"]))
            known = {each.name for each in fields(Findings)} & arrays.keys()
            findings = Findings(
                **{name: arrays[name] for name in known},
                noise_rate=Estimate(**values["noise_rate"]),
                temperature=float(values["temperature"]),
                shared_doubts=float(values["shared_doubts"]),
            )
            own: dict[str, Any] = {name: values[name] for name in _PLAIN}
            own |= {name: arrays[name] for name in _ARRAYS if name in arrays}
            own |= {name: _unpacked(arrays[name]) for name in _TEXTS}
            if "cells" in arrays:
                own["cells"] = pd.DataFrame(**_unpacked(arrays["cells"])).loc[own["samples"]]
            if "annotators" in values:
                own["annotators"] = pd.DataFrame(values["annotators"])
            return cls(**own, class_names=tuple(values["class_names"]), findings=findings)
        except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
            raise ValueError(
                f"{path}: the audit is incomplete or damaged ({error}); run 'labelproof audit' "
                "again with --fresh"
            ) from None

    def suspects_csv(self) -> str:
        """The suspects as a table, as in `suspects`."""
        scores = self.suspects["score"].map("{:.4f}".format)
        return self.suspects.assign(score=scores).to_csv(index=False, lineterminator="\n")


def _no_audit(folder: Path) -> FileNotFoundError:
    return FileNotFoundError(f"{folder}: no audit in this folder; 'labelproof audit' makes one")


def find_audit(folder: Path) -> Path:
    """The folder of an audit: the given one, or the one within a run's folder."""
    for place in (folder, folder / INSIDE):
        if (place / AUDIT).exists():
            return place
    raise _no_audit(folder)


def remove_audit(folder: Path) -> None:
    """Remove what an audit wrote but keep review decisions; refuse a folder of other files."""
    written = (AUDIT, SAMPLES, SUSPECTS, PAGE, SETTINGS, RUNS)
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    # An open database has more files beside it.
    others = [name for name in found - {*written} if not name.startswith((REVIEW, "."))]
    if others and found.intersection(written) and AUDIT not in found:
        raise ValueError(
            f"{folder}: not the folder of an audit, so nothing in it is removed; choose another one"
        )
    # First the file that marks an audit as complete.
    for name in written[:-1]:
        (folder / name).unlink(missing_ok=True)
    if RUNS in found:
        remove_folder(folder / RUNS)


def _read_samples(path: Path, classes: int) -> dict[str, NDArray[Any]]:
    """The arrays of `samples.npz`; they have to fit each other and the classes."""
    arrays = read_npz(path)
    size = len(_unpacked(arrays["samples"]))
    for name in arrays.keys() - {*_TEXTS, "cells"}:
        found, lengths = arrays[name], (size,)
        if name.startswith("transition"):
            lengths = (classes, classes)
        elif name in ("likeliest", "probability"):
            lengths = (size, min(classes, LIKELIEST))
        elif name == "votes":
            lengths = (size, found.shape[-1])
        fits = found.shape == lengths
        if fits and name in ("given", "suggested", "likeliest", "votes") and found.size:
            fits = found.max() < classes and found.min() >= (-1 if name == "votes" else 0)
        if not fits:
            raise ValueError(f"{path.name}: {name} does not fit the samples and classes")
    return arrays


def _packed(values: Any) -> NDArray[np.uint8]:
    """Texts as JSON in bytes: in an array of texts each would take as much as the longest."""
    return np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)


def _unpacked(packed: NDArray[np.uint8]) -> Any:
    return json.loads(packed.tobytes())
