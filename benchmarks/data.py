"""How fast CIFAR-10 gets from its binary files into memory, against reading the same bytes.

The yardstick is `numpy.fromfile` of the six files, which leaves labels and pixels mixed as they
lie. The ratio is what it costs to take them apart, check the labels and make a dataset.

    python benchmarks/data.py --data-root DIR      # a folder with CIFAR-10, binary version
    python benchmarks/data.py                      # random images of the same size

Every time is the best of some repetitions, so the files come from the system's cache: what is
measured is the reader, not the disk.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from labelproof.data import DATASETS, load_dataset

LAYOUT = DATASETS["cifar10"].layouts[0]
RECORD = 1 + 3 * 32 * 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path, help="folder with CIFAR-10; else random images")
    parser.add_argument("--repetitions", type=int, default=7)
    options = parser.parse_args()
    if options.data_root is not None:
        measure(options.data_root, options.repetitions)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_random(Path(folder))
        measure(Path(folder), options.repetitions)


def measure(root: Path, repetitions: int) -> None:
    folder = next(root / name for name in LAYOUT.folders if (root / name).is_dir())
    paths = [folder / name for name in LAYOUT.files]
    size = sum(path.stat().st_size for path in paths)
    yardstick = best(lambda: [np.fromfile(path, np.uint8) for path in paths], repetitions)
    reader = best(lambda: load_dataset("cifar10", root=root), repetitions)
    print(f"CIFAR-10, binary version, {size / 1e6:.0f} MB in {len(paths)} files, from the cache")
    for name, seconds in (("numpy.fromfile", yardstick), ("load_dataset", reader)):
        print(f"  {name:16} {seconds:6.3f} s   {size / seconds / 1e9:5.2f} GB/s", end="")
        print(f"   {seconds / yardstick:5.2f} x numpy.fromfile")


def best(work: Callable[[], object], repetitions: int) -> float:
    """The shortest time, which other processes have disturbed least."""
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
