"""`labelproof data`: which datasets there are, get them, and see that they are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from labelproof.data.download import MIRROR_VARIABLE, download_dataset
from labelproof.data.published import (
    BY_HAND,
    DATASETS,
    ROOT_VARIABLE,
    KnownDataset,
    Verification,
    data_root,
    find_dataset,
    known_dataset,
    verify_dataset,
)

__all__ = ["Root", "app"]

app = typer.Typer(no_args_is_help=True, add_completion=False)

Root = Annotated[
    Path | None,
    typer.Option(
        "--data-root",
        envvar=ROOT_VARIABLE,
        help="Folder of all datasets that have a name.",
        show_default="the user's cache folder",
    ),
]


@app.callback()
def data() -> None:
    """List, download and verify the datasets that have a name; show any of them, or your own."""


@app.command("list")
def list_datasets(root: Root = None) -> None:
    """List the datasets that have a name, and where each is or how to get it.

    A dataset that lies in the layout of its publisher is found: the binary or the python version of
    CIFAR, as a folder or as the archive; MNIST's four files, gzipped or not.
    """
    console = Console()
    folder = data_root(root)
    # Lines rather than columns: what to type and where things lie must not be cut or folded.
    _print(console, f"Datasets in {folder}\n")
    for dataset in DATASETS.values():
        channels, height, width = dataset.image_shape
        counts = " + ".join(f"{dataset.counts[split]:,}" for split in ("train", "test"))
        colour = "grey" if channels == 1 else "colour"
        size = f"{len(dataset.class_names)} classes, {counts} images, {height}x{width} {colour}"
        _print(console, f"{dataset.name:<14} {dataset.summary}")
        _print(console, f"{'':14} {size}")
        _print(console, f"{'':14} {_whereabouts(dataset, folder)}")
    for name, how in BY_HAND.items():
        there = folder / name
        _print(console, f"{name:<14} {there if there.is_dir() else how}")


@app.command()
def download(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Datasets to get.")],
    root: Root = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            envvar=MIRROR_VARIABLE,
            help="Address to fetch from in the publisher's place; MIRROR/NAME/FILE is asked for.",
            show_default="the publisher",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds to wait for an answer before trying again.")
    ] = 30.0,
) -> None:
    """Get datasets from their publishers, unless they are there and right already.

    Every file is checked by its SHA-256 before it is used. After Ctrl-C or a lost connection, the
    same command downloads the files that are missing. Proxies are taken from the environment
    (https_proxy, no_proxy).
    """
    console = Console()
    datasets = [known_dataset(name) for name in names]
    for dataset in datasets:
        with _Display(console, dataset) as display:
            try:
                found = download_dataset(
                    dataset.name, root=root, mirror=mirror, timeout=timeout, progress=display.show
                )
            except KeyboardInterrupt:
                console.print("\nStopped; run the same command to download what is missing.")
                raise typer.Exit(130) from None
        _print(console, _verdict(found))


@app.command()
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Datasets to verify; else all that are there."),
    ] = None,
    root: Root = None,
) -> None:
    """Compare datasets with what was published: counts, sizes and SHA-256.

    What is read is written back in the publisher's own format and its checksum taken, so that every
    version and compression can be verified. Exits with 1 if anything is off.
    """
    console = Console()
    folder = data_root(root)
    chosen = [known_dataset(name).name for name in names or []]
    good = True
    for name in chosen or [name for name in DATASETS if _is_there(DATASETS[name], folder)]:
        found = verify_dataset(name, root=folder)
        _print(console, _verdict(found))
        good = good and found.good
    if not good:
        raise typer.Exit(1)


def _whereabouts(dataset: KnownDataset, root: Path) -> str:
    if dataset.embedded:
        return "always there"
    try:
        found = find_dataset(dataset, root)
    except FileNotFoundError as error:
        return str(error)
    if found is None:
        return f"labelproof data download {dataset.name}  ({_megabytes(_size(dataset))})"
    layout, path = found
    return f"{path} ({layout.version})"


def _is_there(dataset: KnownDataset, root: Path) -> bool:
    try:
        return dataset.embedded or find_dataset(dataset, root) is not None
    except FileNotFoundError:
        # Some of its files are: the verification says which are not.
        return True


def _verdict(found: Verification) -> str:
    where = f"in {found.path} ({found.version})" if found.path else found.version
    if not found.good:
        return "\n".join(f"{found.name}: {problem}" for problem in found.problems)
    if found.unknown:
        names = ", ".join(found.unknown)
        return (
            f"{found.name}: counts and sizes are as published, {where}; no checksum is known of "
            f"{names}"
        )
    return f"{found.name}: as published, {where}"


def _size(dataset: KnownDataset) -> int:
    return sum(file.size for file in dataset.files)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)


class _Display:
    """A bar for each file; a line for each where no one watches."""

    def __init__(self, console: Console, dataset: KnownDataset):
        self.console = console
        self.dataset = dataset
        self.bars: dict[str, TaskID] = {}
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> _Display:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, name: str, done: int, total: int) -> None:
        if name not in self.bars:
            self.bars[name] = self.progress.add_task(name, total=total)
            if not self.console.is_terminal:
                _print(self.console, f"{self.dataset.name}: {name}, {_megabytes(total)}")
        self.progress.update(self.bars[name], completed=done)
