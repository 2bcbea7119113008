"""What layers that the compiler can fold into their neighbours are worth.

    python benchmarks/layers.py --dataset cifar10 --packed 1,8 --output layers.json

Trains the same runs on a GPU with torch's own ReLU and pooling and with those of
`labelproof.training.kernels`, in turns within one process, on random images of the
dataset's shape; each number is the median over the turns. `--inductor` sets options of torch's
compiler, for both sides.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from kernels import configure
from packing import SHAPES
from training import counts, images_per_second, paper_engine

from labelproof.training import trainer
from labelproof.training.execution import choose_execution
from labelproof.training.record import versions

SIDES = ("plain", "fusible")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _arguments(arguments)
    configure(options.inductor)
    execution = choose_execution("cuda")
    engines = {side: paper_engine(options.dataset, execution) for side in SIDES}
    with plain_layers():
        engines["plain"].grow(max(options.packed))
    engines["fusible"].grow(max(options.packed))
    found = {}
    for count in options.packed:
        turns: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(options.turns):
            for side in SIDES:
                steps = engines[side].steps(count)
                turns[side].append(images_per_second(steps, options.seconds, execution.device))
        rates = {side: statistics.median(values) for side, values in turns.items()}
        ratio = rates["fusible"] / rates["plain"]
        found[count] = {"images_per_second": rates, "ratio": round(ratio, 3), "turns": turns}
        print(
            f"{options.dataset}, {count} at once: plain {rates['plain']:,.0f} images/s, "
            f"fusible {rates['fusible']:,.0f}, ratio {ratio:.3f}",
            flush=True,
        )
    if options.output is not None:
        content = {
            "dataset": options.dataset,
            "inductor": options.inductor,
            "runs_at_once": found,
            "versions": versions(execution.device),
        }
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@contextmanager
def plain_layers() -> Iterator[None]:
    """Inside, networks are made with torch's own layers, and compiled with its own options."""
    with patch.object(trainer, "make_fusible", lambda network: network):
        yield


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", default="cifar10", choices=list(SHAPES))
    parser.add_argument("--inductor", action="append", default=[], metavar="NAME=JSON")
    parser.add_argument("--packed", type=counts, default=[1, 4, 8], help="runs at once")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one measurement")
    parser.add_argument("--output", type=Path, help="JSON file for the numbers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
