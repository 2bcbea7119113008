"""`labelproof data show`: look at a dataset, and at what noise does to it."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from labelproof.cli.data import Root
from labelproof.cli.lines import told
from labelproof.data.dataset import Dataset
from labelproof.data.loading import load_dataset
from labelproof.noise import NoiseSpec, NoisyLabels, parse_noise
from labelproof.report.dataset import finding, write_dataset_page

__all__ = ["show"]


def show(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A dataset's name, or your own: a folder of images, a table, a file of arrays."
        ),
    ],
    noise: Annotated[
        str,
        typer.Option(
            help="Wrong labels to put on it: symmetric:RATE, asymmetric:RATE, pair:RATE, "
            "instance:RATE, human:WHICH or none."
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise and of the sample.")] = 1,
    samples: Annotated[int, typer.Option(min=1, help="Images on the page.")] = 80,
    human_labels: Annotated[
        Path | None, typer.Option(help="The file of human labels, for --noise human:WHICH.")
    ] = None,
    skip_unreadable: Annotated[
        bool,
        typer.Option("--skip-unreadable", help="Leave out images that cannot be read, and say so."),
    ] = False,
    data_root: Root = None,
    output: Annotated[Path, typer.Option(help="The page.")] = Path("labelproof-dataset.html"),
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Draw a page about a dataset: its images, its classes, and the noise put on its labels.

    Says first how many labels are wrong, as it came out and not as it was asked for. The page
    shows images with their given and true labels, the classes before and after, and the noise
    matrix.
    """
    console = Console()
    spec = parse_noise(noise)
    if spec.kind == "human" and human_labels is None:
        raise ValueError(f"--human-labels: expected the file with the labels of {spec}, got none")
    with told():
        data = load_dataset(
            dataset, root=data_root, on_error="skip" if skip_unreadable else "raise"
        )
        noisy = None if spec.kind == "none" else _corrupt(data, spec, seed, human_labels)
    console.print(finding(data, noisy), highlight=False)
    with console.status("Drawing the page"):
        page = write_dataset_page(
            output,
            data,
            noisy,
            samples=samples,
            seed=seed,
            command=shlex.join(
                ["labelproof", "data", "show", dataset, "--noise", str(spec), "--seed", str(seed)]
            ),
        )
    address = page.resolve().as_uri()
    opened = open_page and console.is_terminal and webbrowser.open(address)
    console.print(f"{'Opened' if opened else 'Page:'} {page}", highlight=False, markup=False)


def _corrupt(data: Dataset, spec: NoiseSpec, seed: int, human: Path | None) -> NoisyLabels:
    return spec.apply(
        data.train.labels,
        num_classes=data.num_classes,
        dataset=data.name,
        seed=seed,
        features=_features(data) if spec.kind == "instance" else None,
        human=human,
    )


def _features(data: Dataset) -> NDArray[np.uint8]:
    if not isinstance(data.train.images, np.ndarray):
        raise ValueError(
            f"noise: instance noise looks at all images at once, and those of {data.name} are "
            "decoded one by one; save them as arrays first"
        )
    return data.train.images
