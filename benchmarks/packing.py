"""Does a run that shares the GPU with others come to what it comes to alone?

    python benchmarks/packing.py --data-root DIR --dataset cifar10 --runs 8 --at-once 4 --epochs 3

Trains different configurations (losses and seeds), first one at a time, then several at once, and
compares every weight and every metric. With deterministic kernels both must be equal to the last
bit. Without a data root random images of the dataset's shape are used, which serve as well here.
Exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from labelproof.data import Dataset, Split, load_dataset
from labelproof.experiments.presets import paper_losses
from labelproof.training.checkpoint import newest_whole
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.execution import Execution, choose_execution
from labelproof.training.record import versions
from labelproof.training.runner import Job, train_runs

NETWORKS = {"mnist": "cnn4", "cifar10": "cnn8", "cifar100": "resnet34"}
AUGMENTATIONS = {
    "mnist": "none",
    "cifar10": "crop:4,flip",
    "cifar100": "crop:4,flip,rotation:20",
}
SHAPES = {
    "mnist": (60_000, 10_000, (1, 28, 28), 10),
    "cifar10": (50_000, 10_000, (3, 32, 32), 10),
    "cifar100": (50_000, 10_000, (3, 32, 32), 100),
}


@cache
def dataset(name: str, root: str | None) -> Dataset:
    """The dataset itself, or random images of its shape."""
    if root is not None:
        return load_dataset(name, root=root)
    train, test, shape, num_classes = SHAPES[name]
    generator = np.random.default_rng(0)

    def split(count: int) -> Split:
        images = generator.integers(0, 256, (count, *shape), dtype=np.uint8)
        return Split(images, generator.integers(0, num_classes, count))

    return Dataset(
        name=name,
        splits={"train": split(train), "test": split(test)},
        class_names=tuple(str(number) for number in range(num_classes)),
        mean=(0.5,) * shape[0],
        std=(0.25,) * shape[0],
    )


def configurations(name: str, runs: int, epochs: int) -> list[Configuration]:
    """Different losses and seeds, so that a mix-up of any kind shows."""
    losses = paper_losses(name)
    chosen = [losses[method] for method in ("CE+SR", "CE", "GCE", "FL+SR")]
    return [
        Configuration(
            name,
            noise="symmetric:0.6",
            loss=chosen[number % len(chosen)],
            network=NETWORKS[name],
            augmentation=AUGMENTATIONS[name],
            weight_decay=1e-4,
            epochs=epochs,
            seed=1 + number // len(chosen),
        )
        for number in range(runs)
    ]


def outcomes(
    jobs: Sequence[Job], execution: Execution, at_once: int, root: str | None, folder: Path
) -> tuple[dict[str, tuple[bytes, bytes]], float]:
    """The weights and metrics of each run, and the seconds of all."""
    start = time.perf_counter()
    done: dict[str, tuple[bytes, bytes]] = {}
    for event in train_runs(
        [Job(job.configuration, folder / job.configuration.name) for job in jobs],
        execution,
        load=lambda configuration: choose_examples(
            configuration, dataset(configuration.data, root)
        ),
        at_once=at_once,
        checkpoint_seconds=1e9,
    ):
        if event.kind == "finished" and event.job.folder is not None:
            checkpoint = newest_whole(event.job.folder / "checkpoint")[1]
            weights = save(checkpoint.weights if checkpoint else {})
            metrics = (event.job.folder / "metrics.jsonl").read_bytes()
            done[event.job.configuration.name] = (weights, metrics)
            print(f"  {event.value.name}: {event.value.final_accuracy:.2f}%", flush=True)
    return done, time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--dataset", default="cifar10", choices=sorted(NETWORKS))
    parser.add_argument("--data-root", help="where the datasets are; random images without it")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--folder", type=Path, required=True, help="an empty folder for the runs")
    parser.add_argument("--output", type=Path, help="where to write the result as JSON")
    given = parser.parse_args(arguments)
    torch.backends.cudnn.deterministic = True
    execution = choose_execution(given.device, compile=False if given.no_compile else None)
    jobs = [Job(each) for each in configurations(given.dataset, given.runs, given.epochs)]
    results, seconds = {}, {}
    for name, at_once in (("alone", 1), ("again", 1), ("packed", given.at_once)):
        print(name, flush=True)
        results[name], seconds[name] = outcomes(
            jobs, execution, at_once, given.data_root, given.folder / name
        )
    equal = {
        name: {
            run: {
                "weights": results["alone"][run][0] == results[name][run][0],
                "metrics": results["alone"][run][1] == results[name][run][1],
            }
            for run in results["alone"]
        }
        for name in ("again", "packed")
    }
    for name, runs in equal.items():
        for what in ("weights", "metrics"):
            same = sum(found[what] for found in runs.values())
            print(f"{name}: {same} of {len(runs)} runs have the same {what} as alone")
    print(", ".join(f"{name} {value:.1f} s" for name, value in seconds.items()))
    if given.output is not None:
        summary = {
            "dataset": given.dataset,
            "epochs": given.epochs,
            "at_once": given.at_once,
            "seconds": seconds,
            "equal": equal,
            "versions": versions(execution.device),
        }
        given.output.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return 0 if all(all(found.values()) for found in equal["packed"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
