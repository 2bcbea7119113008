"""How fast CIFAR-10 and tables get into memory and labels are corrupted, beside their libraries.

Reading: the yardstick is `numpy.fromfile` of the six binary files, which leaves labels and pixels
mixed as they lie. The ratio is what it costs to take them apart and to check the labels.

Noise: the yardstick is `generator.random(N)`, which no draw that uses one double a label can beat.
Beyond it a draw reads the labels, looks into a table and writes. Exact counts have to sort the
doubles, which is what they cost. One core is used.

Tables: the yardstick is pandas' `read_csv` with its defaults, which leaves a table as it lies. Ours
also learns the columns, encodes them, looks for copies and leaks, and measures the features. Every
reading is a process of its own; the two take turns. Processor time counts, as the clock counts what
else the machine does.

    python benchmarks/data.py --data-root DIR      # a folder with CIFAR-10, binary version
    python benchmarks/data.py                      # random images of the same size
    python benchmarks/data.py --tables             # CSV files of 1,000,000 rows and 20 columns
    python benchmarks/data.py --tables --output benchmarks/results/data-tables.json

Every time is the best of some repetitions, since what else the machine does only ever adds; so the
files come from the system's cache, and what is measured is the reader, not the disk.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from labelproof.data import DATASETS, load_dataset
from labelproof.noise import corrupt, pair_matrix, symmetric_matrix

LAYOUT = DATASETS["cifar10"].layouts[0]
RECORD = 1 + 3 * 32 * 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-root", type=Path, help="folder with CIFAR-10; else random images")
    parser.add_argument("--labels", type=int, default=10_000_000, help="labels to corrupt")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--tables", action="store_true", help="read CSV files instead")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a CSV file")
    parser.add_argument("--output", type=Path, help="a JSON file for every turn; .md beside it")
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        print(json.dumps(read_once(*options.read)))
        return
    if options.tables:
        measure_tables(options.rows, options.repetitions, options.output)
        return
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


def measure_tables(rows: int, repetitions: int, output: Path | None) -> None:
    print(f"CSV files of {rows:,} rows and 20 columns: the best of {repetitions} turns\n")
    lines = [
        "| table | MB | reader | processor s | clock s | peak MB | / pandas |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    turns_of: dict[str, dict[str, list[dict[str, float]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, categories in (
            ("19 numbers and the label", 0),
            ("10 numbers, 9 categories and the label", 10),
        ):
            path = Path(folder, "table.csv")
            write_table(path, rows, categories)
            found = turns_of[name] = {"pandas": [], "labelproof": []}
            for _ in range(repetitions):
                for reader in found:
                    command = [sys.executable, __file__, "--read", reader, str(path)]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    found[reader].append(json.loads(done.stdout))
            yardstick = min(each["processor"] for each in found["pandas"])
            for reader, turns in found.items():
                seconds, clock, peak = (
                    min(each[key] for each in turns) for key in ("processor", "clock", "peak")
                )
                lines.append(
                    f"| {name} | {path.stat().st_size / 1e6:.0f} | {reader} | {seconds:.2f} | "
                    f"{clock:.2f} | {peak:.0f} | {seconds / yardstick:.2f} |"
                )
    print("\n".join(lines))
    if output is not None:
        content = {"rows": rows, "turns": turns_of}
        output.write_text(json.dumps(content, indent=1) + "\n")
        output.with_suffix(".md").write_text("\n".join(lines) + "\n")


def read_once(reader: str, path: str) -> dict[str, float]:
    """Seconds of the processor and the clock, and the megabytes that the process grew by."""
    read = pd.read_csv if reader == "pandas" else load_dataset
    # A small table first, for what is imported on first use.
    small = Path(path).with_suffix(".small.csv")
    with open(path) as whole:
        small.write_text("".join(next(whole) for _ in range(1000)))
    warnings.simplefilter("ignore")
    read(small)
    before = peak_memory()
    clock, processor = time.perf_counter(), time.process_time()
    table = read(path)
    seconds = time.process_time() - processor, time.perf_counter() - clock
    peak = peak_memory() - before
    del table
    return {"processor": seconds[0], "clock": seconds[1], "peak": peak / 1024}


def peak_memory() -> int:
    """Kilobytes; not `ru_maxrss`, which a process inherits from the one that started it."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[0])


def write_table(path: Path, rows: int, categories: int) -> None:
    """Numbers of six decimals, categories of 2 to 10 words, and a label of three classes."""
    generator = np.random.default_rng(0)
    numbers = 20 - max(categories, 1)
    table = pd.DataFrame(generator.normal(size=(rows, numbers)).round(6)).add_prefix("number")
    words = np.array([f"value{number}" for number in range(20)])
    for index in range(categories - 1):
        table[f"category{index}"] = words[generator.integers(0, index + 2, rows)]
    table["label"] = np.array(["bird", "cat", "dog"])[generator.integers(0, 3, rows)]
    table.to_csv(path, index=False)


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
