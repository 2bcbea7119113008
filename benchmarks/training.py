"""How many images a second training takes: this package against the habit of the field.

Both sides train the same network on the same images with the same loss, batch size, augmentation,
gradient clipping and SGD, in turns within one run, so that whatever else the machine does falls on
both; each number is the median over the turns. `packed` is several runs at once on a GPU.

    python benchmarks/training.py --dataset cifar10                       # the CPU
    python benchmarks/training.py --device cuda --packed 1,4,8            # every dataset on a GPU
    python benchmarks/training.py --device cuda --output training.json    # keep the numbers

Without `--data-root` the images are random, which changes neither side's work. The share of the
arithmetic limit counts the multiplications and additions of a direct convolution, forward and
backward, against the rate of a large bf16 matrix product on an H200.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from field_habit import field_steps
from packing import SHAPES, dataset
from torch.utils.flop_counter import FlopCounterMode

from labelproof import parse_loss
from labelproof.data import Dataset
from labelproof.experiments.presets import paper_configuration
from labelproof.models import make_network
from labelproof.training.batches import ResidentInputs
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.execution import Execution, choose_execution
from labelproof.training.record import versions
from labelproof.training.trainer import Trainer

MATRIX_RATE = 790e12
"""Operations a second of a large bf16 matrix product on an H200, as measured."""

AUGMENT = {"mnist": (), "cifar10": ("crop", "flip"), "cifar100": ("crop", "flip", "rotation")}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _arguments(arguments)
    execution = choose_execution(options.device)
    measurements = []
    for name in options.dataset or SHAPES:
        found = measure(name, execution, options)
        measurements.append(found)
        print(table(found), flush=True)
        if options.output is not None:
            content = {"versions": versions(execution.device), "measurements": measurements}
            options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def measure(name: str, execution: Execution, options: argparse.Namespace) -> dict[str, Any]:
    """Let both sides train in turns."""
    data = dataset(name, options.data_root)
    configuration = paper_configuration(name, "CE+SR", noise="symmetric:0.6")
    device = execution.device
    field = field_side(data, configuration, device)
    counts = options.packed if device.type == "cuda" else [1]
    start = time.perf_counter()
    engine = Engine(data, configuration, execution)
    engine.grow(1)
    _wait(device)
    ready = time.perf_counter() - start
    turns: dict[str, list[float]] = {"field": []}
    for count in counts:
        engine.grow(count)
        turns[f"{count} at once"] = []
        for _ in range(options.turns):
            if count == counts[0]:
                turns["field"].append(images_per_second(field, options.seconds, device))
            rate = images_per_second(engine.steps(count), options.seconds, device)
            turns[f"{count} at once"].append(rate)
    medians = {key: statistics.median(values) for key, values in turns.items()}
    return {
        "dataset": name,
        "network": configuration.network,
        "precision": engine.runs[0].configuration.precision,
        "images_per_second": {key: round(value, 1) for key, value in medians.items()},
        "ratio": {
            key: round(value / medians["field"], 2)
            for key, value in medians.items()
            if key != "field"
        },
        "share_of_arithmetic_limit": {
            key: round(value * operations(data, configuration) / MATRIX_RATE, 3)
            for key, value in medians.items()
        }
        if device.type == "cuda"
        else {},
        "megabytes_of_each_further_run": engine.megabytes,
        "seconds_until_the_first_step": round(ready, 1),
        "turns": turns,
    }


class Engine:
    """This package's side: runs that share the images on the device."""

    def __init__(self, data: Dataset, configuration: Configuration, execution: Execution):
        self.execution = execution
        self.configuration = configuration
        self.examples = choose_examples(configuration, data)
        self.images = ResidentInputs(data, execution.device)
        self.runs: list[Trainer] = []
        self.megabytes: list[float] = []

    def grow(self, count: int) -> None:
        """Have so many runs ready."""
        while len(self.runs) < count:
            before = self._memory()
            run = Trainer(self.configuration, self.examples, self.images, self.execution)
            run.prepare()
            run.begin()
            self.runs.append(run)
            self.megabytes.append(round((self._memory() - before) / 1e6, 1))

    def steps(self, count: int) -> Iterator[int]:
        """Train for ever, a step of each run in turn; yields the images of each step."""
        while True:
            for run in self.runs[:count]:
                # An epoch's end without its evaluation, which the field's side does not do either.
                if run.advance():
                    run.epoch, run.step = 0, 0
                    run.begin()
                yield self.configuration.batch_size

    def _memory(self) -> int:
        device = self.execution.device
        return torch.cuda.memory_reserved(device) if device.type == "cuda" else 0


def paper_engine(name: str, execution: Execution) -> Engine:
    """Runs of CE+SR as the paper trains it, on random images of a dataset's shape."""
    configuration = paper_configuration(name, "CE+SR", noise="symmetric:0.6")
    return Engine(dataset(name, None), configuration, execution)


def field_side(data: Dataset, configuration: Configuration, device: torch.device) -> Iterator[int]:
    """The habit of the field, on the same images and with the same loss."""
    network = make_network(
        configuration.network,
        num_classes=data.num_classes,
        input_shape=data.image_shape,
        generator=torch.Generator().manual_seed(0),
    )
    return field_steps(
        data.train.array,
        data.train.labels,
        network,
        parse_loss(configuration.loss),
        device=device,
        batch_size=configuration.batch_size,
        augment=AUGMENT[data.name],
        mean=data.mean,
        std=data.std,
        learning_rate=configuration.learning_rate,
        weight_decay=configuration.weight_decay,
    )


def operations(data: Dataset, configuration: Configuration) -> float:
    """Arithmetic operations of training on one image: forward, and twice that backward."""
    network = make_network(
        configuration.network, num_classes=data.num_classes, input_shape=data.image_shape
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval()(torch.zeros(1, *data.image_shape))
    return 3 * counter.get_total_flops()


def images_per_second(steps: Iterator[int], seconds: float, device: torch.device) -> float:
    """Take steps for `seconds`, after a fifth of that to warm up and use up what lies ready."""
    _take(steps, seconds / 5, device)
    images, elapsed = _take(steps, seconds, device)
    return images / elapsed


def table(found: dict[str, Any]) -> str:
    lines = [
        f"\n{found['dataset']}, {found['network']}, {found['precision']}",
        "| | images/s | ratio | share of the arithmetic limit |",
        "|---|---:|---:|---:|",
    ]
    for key, value in found["images_per_second"].items():
        ratio = found["ratio"].get(key)
        share = found["share_of_arithmetic_limit"].get(key)
        lines.append(
            f"| {key} | {value:,.0f} | {'' if ratio is None else f'{ratio:.1f}'} "
            f"| {'' if share is None else f'{share:.1%}'} |"
        )
    lines.append(f"memory of each run: {found['megabytes_of_each_further_run']} MB")
    return "\n".join(lines)


def _take(steps: Iterator[int], seconds: float, device: torch.device) -> tuple[int, float]:
    _wait(device)
    images, start = 0, time.perf_counter()
    while not images or time.perf_counter() - start < seconds:
        images += next(steps)
    _wait(device)
    return images, time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--dataset", action="append", choices=list(SHAPES), help="all if absent")
    parser.add_argument("--data-root", help="where the datasets are; else random images")
    parser.add_argument("--seconds", type=float, default=5.0, help="of one measurement")
    parser.add_argument("--turns", type=int, default=3, help="measurements of each side")
    parser.add_argument("--packed", type=counts, default=[1, 4, 8], help="runs at once, on a GPU")
    parser.add_argument("--output", type=Path, help="JSON file for the numbers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
