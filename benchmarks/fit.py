"""What `labelproof fit` costs on a folder of photos, beside Pillow's bare decoding.

    python benchmarks/fit.py --output fit.json                 # 20,000 JPEGs of 224 pixels
    python benchmarks/fit.py --images 2000 --output fit.json   # a rehearsal
    python benchmarks/fit.py --table --output table.json       # the start, on a table of 150 rows

Photos are made, not fetched: smooth colours with texture, as JPEG files of quality 85, in as many
folders as classes. Measured in one run on one machine:

- `decode`: Pillow alone, opening every file and decoding it whole, with a process for each core;
- `feed`: what `fit` streams from: decoded, cropped and in batches, with as many processes, and
  nothing that trains;
- `resident`: `labelproof fit` that decodes once to what the network sees and keeps that in memory;
- `streamed`: the same with no memory for images, so that every epoch decodes them anew.

For each of the latter, the largest memory of all its processes together, looked at ten times a
second, and images per second: of the decoding pass, and of the streamed epoch against the decoder.
A small network (`--network`) is the default, since on a CPU any other is what one waits for.

On a table (`--table`), what a person at a terminal waits for: seconds to the first and the last
words of `labelproof fit iris.csv`, and its processor time beside that of `RobustClassifier().fit`
on the same rows with its imports; medians of five runs of each in turn, and the machine's load.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_iris

from labelproof.data.images import ImageFiles
from labelproof.training.augmentation import draw_augmentation, parse_augmentation
from labelproof.training.geometry import short_side
from labelproof.training.streaming import StreamedImages

SIDE = 224
CROP = 48
CLASSES = 8


def main() -> None:
    """Make the photos, decode them, fit on them twice, and print the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--network", default="cnn4(width=4,hidden=16)")
    parser.add_argument("--folder", type=Path, help="keep the photos here, or take those there")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="time the start on a table instead")
    arguments = parser.parse_args()
    if arguments.table:
        times = time_table()
        arguments.output.write_text(json.dumps(times, indent=1) + "\n")
        print(times)
        return
    with tempfile.TemporaryDirectory() as scratch:
        photos = arguments.folder or Path(scratch) / "photos"
        make_photos(photos, arguments.images, arguments.workers)
        files = sorted(str(path) for path in photos.glob("*/*.jpg"))
        found: dict[str, Any] = {
            "images": len(files),
            "cores": os.cpu_count(),
            "workers": arguments.workers,
            "network": arguments.network,
            "decode": decode_all(files, arguments.workers),
            "feed": feed_all(files, arguments.workers),
        }
        for name, memory in (("resident", None), ("streamed", 0)):
            found[name] = fit(photos, Path(scratch) / name, memory, arguments)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    table = describe(found)
    arguments.output.with_suffix(".md").write_text(table + "\n")
    print(table)


ESTIMATOR = """
import pandas as pd
from labelproof import RobustClassifier
table = pd.read_csv("iris.csv")
RobustClassifier(random_state=1).fit(table.drop(columns="label"), table["label"])
"""


def time_table(repeats: int = 5) -> dict[str, float]:
    """Fit on iris with twelve wrong labels at a terminal, in turn with the estimator."""
    frame = load_iris(as_frame=True)["frame"]  # pyright: ignore[reportArgumentType, reportCallIssue]
    names, generator = np.array(["setosa", "versicolor", "virginica"]), np.random.default_rng(0)
    codes = frame.pop("target").to_numpy(copy=True)
    wrong = generator.choice(len(codes), 12, replace=False)
    codes[wrong] = (codes[wrong] + generator.integers(1, 3, 12)) % 3
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        frame.assign(label=names[codes]).to_csv(Path(scratch) / "iris.csv", index=False)
        command = ["-m", "labelproof", "fit", "iris.csv", "--fresh"]
        for _ in range(repeats):
            for name, words in {"fit": command, "estimator": ["-c", ESTIMATOR]}.items():
                for key, value in at_a_terminal(words, scratch).items():
                    found.setdefault(f"{name}_{key}", []).append(value)
    medians = {name: round(statistics.median(values), 2) for name, values in found.items()}
    return medians | {"load": round(os.getloadavg()[0], 1), "cores": os.cpu_count() or 1}


def at_a_terminal(words: list[str], folder: str) -> dict[str, float]:
    """Seconds to the first and the last words of a program, to its end, and of its processor."""
    terminal, end = os.openpty()
    before, started, shown = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), []
    with subprocess.Popen([sys.executable, *words], cwd=folder, stdout=end, stderr=end) as process:
        os.close(end)
        with contextlib.suppress(OSError):  # the end of a terminal on Linux
            while os.read(terminal, 1 << 16):
                shown.append(time.perf_counter() - started)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    os.close(terminal)
    if process.returncode:
        raise SystemExit(f"{words[-1]} ended with {process.returncode}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = {"first_words": shown[0], "last_words": shown[-1]} if shown else {}
    return {**said, "seconds": seconds, "processor_seconds": used}


def make_photos(folder: Path, count: int, workers: int) -> None:
    """Write the photos that are not there yet."""
    missing = [index for index in range(count) if not place(folder, index).exists()]
    for index in range(CLASSES):
        (folder / f"class {index}").mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers) as pool:
        for _ in pool.map(write_photo, [str(folder)] * len(missing), missing, chunksize=64):
            pass


def place(folder: Path, index: int) -> Path:
    """Where a photo lies."""
    return folder / f"class {index % CLASSES}" / f"{index:06}.jpg"


def write_photo(folder: str, index: int) -> None:
    """One photo: its class in the colours, its number in the texture."""
    generator = np.random.default_rng(index)
    coarse = generator.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    coarse[..., index % 3] //= 1 + index % CLASSES
    image = Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    texture = generator.normal(0, 12, (SIDE, SIDE, 1))
    pixels = np.clip(np.asarray(image) + texture, 0, 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=85)
    place(Path(folder), index).write_bytes(content.getvalue())


def decode_all(files: list[str], workers: int) -> dict[str, float]:
    """Pillow alone, over all cores."""
    with ProcessPoolExecutor(workers) as pool:
        for file in files:
            Path(file).read_bytes()  # from the disk, which whoever comes first would wait for
        list(pool.map(decode_one, files[: 4 * workers]))  # the processes are there now
        start = time.perf_counter()
        for _ in pool.map(decode_one, files, chunksize=64):
            pass
        seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 2), "images_per_second": round(len(files) / seconds, 1)}


def feed_all(files: list[str], workers: int) -> dict[str, float]:
    """Batches as a streamed training gets them, without the training."""
    augmentation = parse_augmentation(f"resized-crop:{CROP},flip")
    images = ImageFiles(files, mode="RGB", short_side=short_side(CROP))
    draws = draw_augmentation(augmentation, len(files), torch.Generator().manual_seed(0))
    with contextlib.closing(StreamedImages(images, augmentation, workers=workers)) as stream:
        first = range(256)
        for _ in stream.batches(first, 128, draws=draws[:256]):
            pass  # the processes are there now
        start = time.perf_counter()
        for _ in stream.batches(range(len(files)), 128, draws=draws):
            pass
        seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 2), "images_per_second": round(len(files) / seconds, 1)}


def decode_one(file: str) -> None:
    """Open one file and decode all of it."""
    with Image.open(file) as image:
        image.convert("RGB").load()


def fit(
    photos: Path, folder: Path, memory: int | None, arguments: argparse.Namespace
) -> dict[str, float]:
    """Train for one epoch in a process of its own, and look at its memory and its pace."""
    command = [sys.executable, "-m", "labelproof", "fit", str(photos), "--output", str(folder)]
    command += ["--no-audit"]  # the training is what is measured
    command += ["--epochs", "1", "--device", "cpu", "--network", arguments.network]
    command += ["--batch-size", "128", "--augmentation", f"resized-crop:{CROP},flip"]
    command += ["--workers", str(arguments.workers)]
    command += [] if memory is None else ["--image-memory", str(memory)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    largest = 0.0
    while process.poll() is None:
        largest = max(largest, memory_of(process.pid))
        time.sleep(0.1)
    seconds = time.perf_counter() - start
    assert process.stdout is not None
    if process.returncode:
        raise SystemExit(process.stdout.read())
    timing = json.loads((folder / "timing.jsonl").read_text().splitlines()[-1])
    return {
        "seconds": round(seconds, 2),
        "epoch_images_per_second": timing["images_per_second"],
        "megabytes": round(largest / 1e6, 1),
    }


def memory_of(process: int) -> float:
    """Bytes of a process and all below it, shared pages counted once (Linux alone tells)."""
    total = 0.0
    for each in [process, *children_of(process)]:
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * float(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def children_of(process: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            below = [int(each) for each in path.read_text().split()]
        except OSError:
            continue
        for each in below:
            found += [each, *children_of(each)]
    return found


def describe(found: dict[str, Any]) -> str:
    """The comparison as a table."""
    bare = found["decode"]["images_per_second"]
    lines = [
        f"{found['images']:,} JPEGs of {SIDE} pixels, {found['cores']} cores, {found['network']}",
        "",
        "| what | images/s of an epoch | of bare decoding | seconds in all | memory, MB |",
        "|---|---|---|---|---|",
        f"| Pillow decodes | {bare:,.0f} | 1.00 | {found['decode']['seconds']:.1f} | |",
        f"| fit's feed, nothing trained | {found['feed']['images_per_second']:,.0f} "
        f"| {found['feed']['images_per_second'] / bare:.2f} | {found['feed']['seconds']:.1f} | |",
    ]
    for name in ("resident", "streamed"):
        entry = found[name]
        rate = entry["epoch_images_per_second"]
        lines.append(
            f"| fit, {name} | {rate:,.0f} | {rate / bare:.2f} | {entry['seconds']:.1f} | "
            f"{entry['megabytes']:,.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
