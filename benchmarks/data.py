"""How fast CIFAR-10 gets into memory and labels are corrupted, each beside numpy's own speed.

Reading: the yardstick is `numpy.fromfile` of the six binary files, which leaves labels and pixels
mixed as they lie. The ratio is what it costs to take them apart and to check the labels.

Noise: the yardstick is `generator.random(N)`, which no draw that uses one double a label can beat.
Beyond it a draw reads the labels, looks into a table and writes. Exact counts have to sort the
doubles, which is what they cost. One core is used.

    python benchmarks/data.py --data-root DIR      # a folder with CIFAR-10, binary version
    python benchmarks/data.py                      # random images of the same size

Every time is the best of some repetitions, since what else the machine does only ever adds; so the
files come from the system's cache, and what is measured is the reader, not the disk.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from labelproof.data import DATASETS, load_dataset
from labelproof.noise import corrupt, pair_matrix, symmetric_matrix

LAYOUT = DATASETS["cifar10"].layouts[0]
RECORD = 1 + 3 * 32 * 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path, help="folder with CIFAR-10; else random images")
    parser.add_argument("--labels", type=int, default=10_000_000, help="labels to corrupt")
    parser.add_argument("--repetitions", type=int, default=7)
    options = parser.parse_args()
    if options.data_root is not None:
        measure_reading(options.data_root, options.repetitions)
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_random(Path(folder))
            measure_reading(Path(folder), options.repetitions)
    measure_noise(options.labels, options.repetitions)


def measure_reading(root: Path, repetitions: int) -> None:
    folder = next(root / name for name in LAYOUT.folders if (root / name).is_dir())
    paths = [folder / name for name in LAYOUT.files]
    size = sum(path.stat().st_size for path in paths)
    yardstick = best(lambda: [np.fromfile(path, np.uint8) for path in paths], repetitions)
    reader = best(lambda: load_dataset("cifar10", root=root), repetitions)
    print(f"CIFAR-10, binary version, {size / 1e6:.0f} MB in {len(paths)} files, from the cache")
    for name, seconds in (("numpy.fromfile", yardstick), ("load_dataset", reader)):
        print(f"  {name:16} {seconds:6.3f} s   {size / seconds / 1e9:5.2f} GB/s", end="")
        print(f"   {seconds / yardstick:5.2f} x numpy.fromfile")


def measure_noise(count: int, repetitions: int) -> None:
    generator = np.random.Generator(np.random.PCG64(0))
    yardstick = best(lambda: generator.random(count), repetitions)
    print(f"{count:,} labels\n")
    print("| what | seconds | / uniform doubles |")
    print("|---|---:|---:|")
    print(f"| uniform doubles | {yardstick:.3f} | 1.0 |")
    few, many = (generator.integers(0, classes, count) for classes in (10, 100))
    cases = {
        "symmetric 0.4, 10 classes": lambda: corrupt(few, symmetric_matrix(10, 0.4), seed=1),
        "symmetric 0.4, 100 classes": lambda: corrupt(many, symmetric_matrix(100, 0.4), seed=1),
        "pair 0.4, 10 classes": lambda: corrupt(few, pair_matrix(10, 0.4), seed=1),
        "symmetric 0.4, 10 classes, exact": lambda: corrupt(
            few, symmetric_matrix(10, 0.4), seed=1, exact=True
        ),
    }
    for name, function in cases.items():
        seconds = best(function, repetitions)
        print(f"| {name} | {seconds:.3f} | {seconds / yardstick:.1f} |")


def best(work: Callable[[], object], repetitions: int) -> float:
    """The shortest of several runs."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
        del result
    return min(seconds)


def write_random(root: Path) -> None:
    folder = root / LAYOUT.folders[0]
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    for name in LAYOUT.files:
        records = generator.integers(0, 256, (10_000, RECORD), dtype=np.uint8)
        records[:, 0] %= 10
        records.tofile(folder / name)


if __name__ == "__main__":
    main()
