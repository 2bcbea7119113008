"""`labelproof data`: list, download and verify the published datasets."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from labelproof.cli.console import show_page, tell
from labelproof.cli.options import takes
from labelproof.data import (
    DATASETS,
    Columns,
    Dataset,
    KnownDataset,
    Verification,
    download_dataset,
    load_dataset,
    verify_dataset,
)
from labelproof.data.images import OnError
from labelproof.data.notices import count
from labelproof.data.published import WEBVISION, find_dataset, find_human_labels, known_dataset
from labelproof.data.published import data_root as find_root
from labelproof.noise import parse_noise
from labelproof.report.dataset import finding, write_dataset_page

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def data() -> None:
    """List, download and verify the published datasets; show any of them, or your own."""


@app.command("list")
@takes()
def list_datasets(*, data_root: Path | None = None) -> None:
    """List the published datasets, and where each is or how to get it.

    labelproof reads the publishers' layouts: the binary or the python version of CIFAR, unpacked;
    MNIST's four files, gzipped or not.
    """
    folder = find_root(data_root)
    # Lines rather than columns: commands and paths must not be cut or folded.
    tell(f"Datasets in {folder}\n")
    for dataset in DATASETS.values():
        channels, height, width = dataset.image_shape
        counts = " + ".join(f"{dataset.counts[split]:,}" for split in ("train", "test"))
        colour = "grey" if channels == 1 else "colour"
        size = f"{len(dataset.class_names)} classes, {counts} images, {height}x{width} {colour}"
        tell(f"{dataset.name:<14} {dataset.summary}")
        tell(f"{'':14} {size}")
        tell(f"{'':14} {_location(dataset, folder)[1]}")
    there = folder / "webvision"
    tell(f"{'webvision':<14} {there if there.is_dir() else WEBVISION}")


@app.command()
@takes()
def download(
    names: list[str],
    *,
    data_root: Path | None = None,
    mirror: str | None = None,
    timeout: float = 30.0,
) -> None:
    """Download datasets from their publishers, unless they are present and verified.

    Every file must match its SHA-256. After Ctrl-C or a lost connection, the same command downloads
    the missing files. Proxies come from the environment (https_proxy, no_proxy).

    Args:
        names: Datasets to download.
        mirror: Address to download from instead, as MIRROR/NAME/FILE; by default the publisher's.
        timeout: Seconds to wait for an answer before trying again.
    """
    datasets = [known_dataset(name) for name in names]
    for dataset in datasets:
        found = _download(dataset.name, root=data_root, mirror=mirror, timeout=timeout)
        tell(_verdict(found))


@app.command()
@takes()
def verify(names: list[str] | None = None, *, data_root: Path | None = None) -> None:
    """Compare datasets with the published ones: counts, sizes and SHA-256.

    Each dataset is written back in the publisher's format in memory, so that every version and
    compression can be verified. The exit code is 1 if anything differs.

    Args:
        names: Datasets to verify; by default all that are present.
    """
    folder = find_root(data_root)
    chosen = [known_dataset(name).name for name in names or []]
    good = True
    for name in chosen or [name for name in DATASETS if _location(DATASETS[name], folder)[0]]:
        found = verify_dataset(name, root=folder)
        tell(_verdict(found))
        good = good and found.good
    if not good:
        raise typer.Exit(1)


def _location(dataset: KnownDataset, root: Path) -> tuple[bool, str]:
    """Whether a dataset is present, and where it is or how to get it."""
    if not dataset.files:
        return True, "always there"
    found = find_dataset(dataset, root)
    if found is None:
        size = _megabytes(sum(file.size for file in dataset.files))
        return False, f"labelproof data download {dataset.name}  ({size})"
    layout, path = found
    return True, f"{path} ({layout.version})"


def _verdict(found: Verification) -> str:
    where = f"in {found.path} ({found.version})" if found.path else found.version
    if not found.good:
        return "\n".join(f"{found.name}: {problem}" for problem in found.problems)
    if found.unknown:
        known = f"{found.name}: counts and sizes are as published, {where}"
        return f"{known}; no checksum is known of {', '.join(found.unknown)}"
    return f"{found.name}: as published, {where}"


def _download(name: str, **options: Any) -> Verification:
    """Download with the progress of each file, or a line for each without a terminal."""
    console, started = Console(), set[str]()
    with console.status(f"Downloading {name}") as status:

        def show(file: str, done: int, total: int) -> None:
            status.update(f"{name}: {file}, {_megabytes(done)} of {_megabytes(total)}")
            if file not in started and not console.is_terminal:
                tell(f"{name}: {file}, {_megabytes(total)}")
            started.add(file)

        return download_dataset(name, progress=show, **options)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


SHOWN = 60
"""Number of columns and classes of a table that are listed; those in the middle are left out."""


@app.command()
@takes()
def show(
    dataset: str,
    *,
    noise: str = "none",
    seed: int = 1,
    samples: int = 80,
    human_labels: Path | None = None,
    label: str | None = None,
    on_error: OnError = "skip",
    data_root: Path | None = None,
    output: Path | None = None,
    open_page: bool = True,
) -> None:
    """Write a page about a dataset: its images, its classes, and the noise added to its labels.

    The command prints the actual share of wrong labels. The page shows images with their given and
    true labels, the class counts before and after, and the noise matrix. For a table, the command
    lists columns and classes instead.

    Args:
        dataset: A dataset's name, or your own: a folder of images, a table, a file of arrays.
        noise: Label noise to add: symmetric:RATE, asymmetric:RATE, pair:RATE, instance:RATE,
            human:WHICH or none.
        seed: Seed of the noise and of the sample.
        samples: Images on the page.
        output: The page; by default it is named after the data and the noise, such as
            photos-dataset.html.
    """
    spec = parse_noise(noise)
    data = load_dataset(dataset, root=data_root, on_error=on_error, label=label)
    noisy = None
    if spec.kind != "none":
        noisy = spec.apply(
            data.train.labels,
            num_classes=data.num_classes,
            dataset=data.name,
            seed=seed,
            features=data.features if spec.kind == "instance" else None,
            human=human_labels or find_human_labels(data.name, data_root),
        )
    if data.tabular:
        _show_table(data)
        if noisy is not None:
            tell(finding(data, noisy))
        return
    tell(finding(data, noisy))
    name = data.name if noisy is None else f"{data.name}-{spec}".replace(":", "-")
    with Console().status("Drawing the page"):
        page = write_dataset_page(
            output or Path(f"{name}-dataset.html"),
            data,
            noisy,
            samples=samples,
            seed=seed,
            command=shlex.join(
                ["labelproof", "data", "show", dataset, "--noise", str(spec), "--seed", str(seed)]
            ),
        )
    show_page(page, opened=open_page)


def _show_table(data: Dataset) -> None:
    """Print the rows, columns and classes of a table."""
    columns = data.columns or Columns(())
    others = [f"{len(s):,} to {name}" for name, s in data.splits.items() if name != "train"]
    sizes = ", ".join([f"{count(len(data.train), 'row')} to train on", *others])
    tell(
        f"{data.name}: {sizes}, {count(len(columns.columns), 'column')}, "
        f"{count(data.input_shape[0], 'feature')}, {count(data.num_classes, 'class', 'classes')}",
    )
    kinds = pd.DataFrame(
        [(each.name, each.kind, each.missing, len(each.feature_names)) for each in columns.columns],
        columns=["column", "kind", "missing", "features"],
    )
    tell(kinds.to_string(index=False, max_rows=SHOWN))
    for name, reason in columns.left_out:
        tell(f"left out: {name} ({reason})")
    sizes = np.bincount(data.train.labels, minlength=data.num_classes)
    classes = pd.DataFrame({"class": data.class_names, "rows to train on": sizes})
    tell(classes.to_string(index=False, max_rows=SHOWN))
    if not data.clean:
        tell("How many labels are wrong is not known.")
