"""The data of figures: curves of records by epoch, and embeddings of test images.

Every function of panels takes a store of records and a dataset. `methods` are rows of the tables,
or losses as text; by default the paper's. `columns` are those of the tables; by default all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.data.dataset import Dataset
from labelproof.experiments.grids import GRIDS, Names, PlannedRun, choose_rows, plan
from labelproof.experiments.presets import paper_method
from labelproof.experiments.records import RecordStore, find_record_files, read_record_file
from labelproof.models import penultimate
from labelproof.npz import read_npz
from labelproof.ranges import choose
from labelproof.training.batches import CHUNK
from labelproof.training.configuration import Configuration
from labelproof.training.files import write_arrays
from labelproof.training.metrics import evaluating
from labelproof.training.record import RECORD
from labelproof.training.trained_network import TrainedNetwork

SPARSE_METHODS = ("CE", "FL", "GCE", "CE+SR", "FL+SR", "GCE+SR")
"""The methods of the paper's figure of sparse rates."""

SWEEPS = {"sweep-lambda": "λ", "sweep-tau": "τ", "sweep-p": "p"}
"""The symbol of the parameter that each sweep varies."""

FITTED = {
    "clean_fitted": "right labels fitted",
    "wrong_fitted": "wrong labels fitted (memorised)",
    "wrong_corrected": "wrong labels, true class predicted",
}
"""The names of shares of the training labels, by metric."""


@dataclass(frozen=True)
class Panel:
    """One plot of a figure.

    Attributes:
        title: Its title.
        lines: By name in the legend, the values by epoch of each seed; empty without records.
        epochs: Number of epochs of the runs; a line may be longer.
    """

    title: str
    lines: Mapping[str, Sequence[Sequence[float]]]
    epochs: int

    @property
    def missing(self) -> list[str]:
        """The lines that have no records."""
        return [name for name, seeds in self.lines.items() if not seeds]


def accuracy_panels(
    store: RecordStore, dataset: str, *, methods: Names = (), columns: Names = ()
) -> list[Panel]:
    """Test accuracy of every method: without noise, then for each rate of both kinds of noise.

    A column such as `0.4` stands for both kinds of noise, `sym-0.4` and `asym-0.4` for one.

    Example:
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
    sweep: str, store: RecordStore, dataset: str, *, methods: Names = (), columns: Names = ()
) -> list[Panel]:
    """Test accuracy for each value of one of `SWEEPS`, a panel for each loss.

    Methods are losses with their regulariser, such as `gce(q=0.5)+SR`.
    """
    symbol = SWEEPS[choose("sweep", sweep, SWEEPS)]
    panels = []
    for method in choose_rows(sweep, dataset, methods):
        runs = plan(sweep, dataset, methods=[method], columns=columns)
        names = [f"{symbol} = {run.column}" for run in runs]
        title = (
            method.replace("(tau=", ", τ = ").replace(")", "") if "SR(tau=" in method else method
        )
        panels.append(_panel(store, title, runs, "test_accuracy", names))
    return panels


def memorisation_panels(
    store: RecordStore, dataset: str, *, methods: Names = (), columns: Names = ()
) -> list[Panel]:
    """The shares of right and wrong labels that are fitted, with cross entropy and with CE+SR.

    A panel for each rate of symmetric noise with cross entropy, then the same with CE+SR, or with
    `methods` instead of these two.
    """
    known = GRIDS["symmetric"].columns[1:]
    rates = [choose("column", column, known) for column in columns] or known
    panels = []
    for method in choose_rows("symmetric", dataset, methods or ("CE", "CE+SR")):
        for rate in rates:
            (run,) = plan("symmetric", dataset, columns=[rate], methods=[method])
            lines = {name: _values(store, run, metric) for metric, name in FITTED.items()}
            panels.append(Panel(f"{method}, symmetric {rate}", lines, run.configuration.epochs))
    return panels


def _panel(
    store: RecordStore,
    title: str,
    runs: Sequence[PlannedRun],
    metric: str,
    names: Sequence[str] = (),
) -> Panel:
    named = zip(names or [run.method for run in runs], runs, strict=True)
    lines = {name: _values(store, run, metric) for name, run in named}
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


MOST_CLASSES = 10
"""Most classes that colours can distinguish; of more, the first are shown."""


@dataclass(frozen=True)
class Embedding:
    """A two-dimensional embedding of test images by a run's network.

    Attributes:
        method: The run's method, by its name in the paper's tables.
        noise: The run's noise.
        accuracy: Of the last epoch on all test images, percent.
        points: `(N, 2)`.
        labels: The images' true classes, `(N)`.
    """

    method: str
    noise: str
    accuracy: float
    points: NDArray[np.floating]
    labels: NDArray[np.int64]


def find_runs(folders: Sequence[Path]) -> dict[Path, Configuration]:
    """The finished runs in these folders or below them, in order.

    Raises:
        FileNotFoundError: There is none.
    """
    runs = {
        file.parent: Configuration.recorded(read_record_file(file).configuration)
        for folder in folders
        for file in find_record_files(folder)
        if file.name == RECORD
    }
    if not runs:
        listed = ", ".join(str(folder) for folder in folders)
        raise FileNotFoundError(
            f"runs: no finished run is kept in {listed}; 'labelproof bench ... --keep-runs' and "
            "'labelproof train' leave such folders"
        )
    return runs


def sample_test_images(dataset: Dataset, images: int) -> NDArray[np.int64]:
    """Indices of test images of the first `MOST_CLASSES` classes, the same for every run.

    Example:
        >>> from labelproof.data import load_digits
        >>> sample_test_images(load_digits(), 4)
        array([121, 229, 285, 380])
    """
    shown = np.flatnonzero(dataset.test.labels < MOST_CLASSES)
    generator = np.random.default_rng(0)
    return np.sort(generator.choice(shown, min(images, len(shown)), replace=False))


def see_features(
    run: TrainedNetwork, dataset: Dataset, chosen: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The inputs of the last layer of a run's network for some test images, `(N, D)`."""
    features, source = [], cast(Any, dataset.test.images)
    with evaluating(run.network):
        for indices in torch.from_numpy(chosen).split(CHUNK):
            images = [run.fit_image(source[index]) for index in indices.tolist()]
            pixels = torch.from_numpy(np.stack(images)).permute(0, 2, 3, 1)
            features.append(penultimate(run.network, run.prepare(pixels)).float().cpu())
    return torch.cat(features).numpy()


def embed(run: TrainedNetwork, dataset: Dataset, chosen: NDArray[np.int64]) -> Embedding:
    """Embed a finished run's features of four or more test images in the plane by t-SNE."""
    assert run.record is not None  # noqa: S101
    return Embedding(
        paper_method(run.configuration),
        run.configuration.noise,
        run.record.final_accuracy,
        to_plane(see_features(run, dataset, chosen)),
        dataset.test.labels[chosen],
    )


def to_plane(features: NDArray[np.float32]) -> NDArray[np.floating]:
    """Features `(N, D)` in the plane, `(N, 2)`, by t-SNE with a fixed seed."""
    # Imported here: scikit-learn takes a second, and most commands do not need it.
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(features) - 1) / 3)
    return TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(features)


_NAMES = ("methods", "noises", "accuracies", "points", "labels")


def write_embeddings(path: Path, embeddings: Sequence[Embedding]) -> None:
    """Write embeddings of the same test images to an `.npz` file, a few kilobytes each."""
    points = np.stack([each.points for each in embeddings]).astype(np.float32)
    # Centred and scaled, which a picture does not show, float16 is accurate enough.
    points -= points.mean(axis=1, keepdims=True)
    points /= np.abs(points).max(axis=(1, 2), keepdims=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(
        path,
        {
            "methods": np.array([each.method for each in embeddings]),
            "noises": np.array([each.noise for each in embeddings]),
            "accuracies": np.array([each.accuracy for each in embeddings], dtype=np.float64),
            "points": points.astype(np.float16),
            "labels": np.asarray(embeddings[0].labels, dtype=np.int16),
        },
    )


def read_embeddings(path: Path, noise: str | None = None) -> list[Embedding]:
    """The embeddings in a file, of one kind of noise or all, in the order of the paper.

    Plain losses come first, and rates rise. No noise at all is the first rate of `symmetric`.

    Raises:
        ValueError: The file holds something else.

    Example:
        >>> file = getfixture("tmp_path") / "embeddings.npz"
        >>> points, labels = np.array([[0.0, 0.0], [4.0, 2.0]]), np.array([3, 1])
        >>> write_embeddings(file, [Embedding("CE", "none", 99.0, points, labels)])
        >>> (found,) = read_embeddings(file)
        >>> found.method, found.points.tolist(), found.labels
        ('CE', [[-1.0, -0.5], [1.0, 0.5]], array([3, 1]))
    """
    try:
        arrays = read_npz(Path(path), _NAMES)
        methods, noises, accuracies, points, labels = (arrays[name] for name in _NAMES)
    except ValueError as error:
        raise ValueError(f"{path}: not a file of embeddings ({error})") from None
    kinds = ("none", "symmetric") if noise == "symmetric" else (noise,)
    embeddings = [
        Embedding(str(method), str(kind), float(accuracy), each, labels.astype(np.int64))
        for method, kind, accuracy, each in zip(methods, noises, accuracies, points, strict=True)
        if not noise or str(kind).partition(":")[0] in kinds
    ]
    return sorted(
        embeddings,
        key=lambda each: ("+SR" in each.method, each.method, each.noise != "none", each.noise),
    )
