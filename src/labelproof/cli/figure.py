"""`labelproof figure`: a figure of the paper from records, or from kept runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labelproof.cli.console import tell
from labelproof.cli.options import split_names, takes
from labelproof.cli.table import choose_dataset
from labelproof.data.load import load_dataset
from labelproof.data.published import known_dataset
from labelproof.experiments.figures import (
    Embedding,
    embed,
    find_runs,
    read_embeddings,
    sample_test_images,
)
from labelproof.experiments.tables import explain_left_out, open_records
from labelproof.ranges import choose
from labelproof.report.figures import FIGURES, SUFFIXES, draw_embeddings, draw_figure, save_figure
from labelproof.report.page import DATASETS
from labelproof.verbs.run import load_run

TSNE = "tsne"


@takes(losses=True)
def figure(
    name: str,
    *,
    output: Path,
    dataset: str | None = None,
    methods: str | None = None,
    columns: str | None = None,
    records: Path = Path("records"),
    runs: list[Path] | None = None,
    embeddings: Path | None = None,
    noise: str | None = None,
    images: int = 1000,
    device: str = "auto",
    data_root: Path | None = None,
) -> None:
    """Draw a figure of the paper from the records that 'labelproof bench' keeps.

    Accuracy by epoch of every method, for each kind and rate of noise:

        labelproof figure accuracy --dataset mnist --output accuracy.svg

    Columns of accuracy are rates, or sym-0.4 and asym-0.4 for one kind of noise. Lines are means
    over the available seeds; bands reach from the lowest to the highest. A panel without records
    says so. You can draw your own loss:

        labelproof figure accuracy --dataset mnist --methods "CE gce(q=0.5)" --output mine.svg

    tsne shows the features before the last layer of each network, for the same test images,
    embedded in two dimensions. It needs weights, which 'labelproof bench' keeps with --keep-runs:

        labelproof bench symmetric --dataset mnist --methods "CE CE+SR" --keep-runs

        labelproof figure tsne --runs labelproof-runs --output features.png

    Args:
        name: accuracy: accuracy of every method by epoch, a panel for each kind and rate of noise;
            sparse: sparse rate and accuracy by epoch, symmetric noise 0.8; memorisation: shares of
            correct and wrong labels that are fitted, CE against CE+SR; sweep-lambda, sweep-tau,
            sweep-p: accuracy by epoch for different λ, τ or p, symmetric noise 0.6; tsne: features
            of networks, from kept runs.
        output: The file to write; its name ends in .svg, .png or .pdf.
        runs: For tsne: the folder of a run, or of runs; by default labelproof-runs.
        embeddings: For tsne: a file of embeddings such as records/embeddings/mnist.npz, instead of
            runs.
        noise: For tsne with --embeddings: one kind of noise, such as symmetric; by default all.
        images: For tsne: the number of test images.
    """
    choose("figure", name, (*FIGURES, TSNE))
    choose("ending of --output", output.suffix.lower(), SUFFIXES)
    features = name == TSNE
    if (methods or columns if features else runs or embeddings) or (noise and not embeddings):
        raise ValueError(
            "figure: expected --runs or --embeddings with tsne, --methods or --columns with the "
            "others, --noise with --embeddings"
        )
    if not features:
        data = choose_dataset(f"figure {name}", dataset, FIGURES[name].datasets)
        rows, taken = split_names(methods), split_names(columns)
        store = open_records(records)
        drawn = draw_figure(store, name, data, methods=rows, columns=taken)
        if note := explain_left_out(store, dataset=data):
            tell(note, aside=True)
    else:
        if embeddings is None:
            folders = runs or [Path("labelproof-runs")]
            data, found, names = _embed(folders, dataset, images, device, data_root)
        else:
            data, found = embeddings.stem, read_embeddings(embeddings, noise)
            names = known_dataset(data).class_names
        if not found:
            raise ValueError(f"--noise: {embeddings} has no embeddings with {noise} noise")
        shown = f"{len(found[0].labels):,} test images (t-SNE), {DATASETS.get(data, data)}"
        drawn = draw_embeddings(found, title=f"Features of {shown}", class_names=names)
    save_figure(drawn, output)
    tell(f"Wrote {output}", aside=True)


def _embed(
    folders: list[Path], dataset: str | None, images: int, device: str, root: Path | None
) -> tuple[str, list[Embedding], Sequence[str]]:
    """The dataset of kept runs, their embeddings of some test images, and the class names."""
    found = find_runs(folders)
    known = tuple(dict.fromkeys(configuration.data for configuration in found.values()))
    data = choose_dataset("these runs", dataset, known)
    chosen = [path for path, configuration in found.items() if configuration.data == data]
    # Without noise first, plain losses above their regularised forms, as in the paper.
    chosen.sort(key=lambda path: ("+sr" in found[path].loss, found[path].noise != "none"))
    loaded = load_dataset(data, root=root)
    sample = sample_test_images(loaded, images)
    embeddings = [embed(load_run(path, device), loaded, sample) for path in chosen]
    return data, embeddings, loaded.class_names
