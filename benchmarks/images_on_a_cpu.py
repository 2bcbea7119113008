"""What `labelproof fit` comes to on a folder of images on a CPU, in the minutes it is given.

    python benchmarks/images_on_a_cpu.py --data-root DIR --minutes 3 --output FILE.json

`DIR` holds CIFAR-10 as its publisher packs it. Some of its training images (`--images`) are written
as PNG files into a folder for each class, a fifth of them into the folder of another class; 2,000
test images lie in the right folders. `fit` is run as a command without any setting of the training,
and measured on the test images. Beside it: logistic regression on the same pixels and labels, its
strength chosen on a fifth of those labels; and on what an untrained ResNet-18 makes of
them (`--frozen`).

A file that is there is added to: an entry of the same images and minutes is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelproof.data import load_dataset
from labelproof.models.text import make_network

TESTED = 2000
WRONG = 0.2


def main() -> None:
    """Write the folder, fit on it, fit the others, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-root", type=Path, required=True)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--frozen", action="store_true", help="an untrained ResNet-18, too")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    dataset = load_dataset("cifar10", root=arguments.data_root)
    generator = np.random.default_rng(1)
    parts: dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]] = {}
    for name, size in (("train", arguments.images), ("test", TESTED)):
        split = dataset.splits[name]
        index = generator.permutation(len(split))[:size]
        parts[name] = split.array[index], split.labels[index]
    pixels, labels = parts["train"]
    wrong = generator.permutation(len(labels))[: round(WRONG * len(labels))]
    given = labels.copy()
    given[wrong] = (given[wrong] + generator.integers(1, 10, len(wrong))) % 10
    parts["train"] = pixels, given

    entry: dict[str, Any] = {"images": arguments.images, "minutes": arguments.minutes}
    entry |= {"cores": os.cpu_count(), "threads": torch.get_num_threads()}
    entry |= {"machine": platform.machine(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "photos"
        write_folder(folder, parts, dataset.class_names)
        entry["fit"] = fit(folder, arguments.minutes)
    entry["pixels"] = regression(flat(pixels), given, flat(parts["test"][0]), parts["test"][1])
    if arguments.frozen:
        begin = time.perf_counter()
        features = [frozen_features(each[0]) for each in parts.values()]
        entry["frozen"] = regression(features[0], given, features[1], parts["test"][1])
        entry["frozen"]["seconds"] = round(time.perf_counter() - begin, 1)
    there = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
    key = ("images", "minutes")
    others = [each for each in there if any(each[name] != entry[name] for name in key)]
    entries = sorted([*others, entry], key=lambda each: [each[name] for name in key])
    arguments.output.write_text(json.dumps(entries, indent=1) + "\n")
    arguments.output.with_suffix(".md").write_text(table(entries))
    print(table(entries))


def write_folder(
    folder: Path,
    parts: dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]],
    class_names: tuple[str, ...],
) -> None:
    """Write each image into the folder of its label."""
    for part, (images, labels) in parts.items():
        for name in class_names:
            (folder / part / name).mkdir(parents=True, exist_ok=True)
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            path = folder / part / class_names[label] / f"{number:05}.png"
            Image.fromarray(image.transpose(1, 2, 0)).save(path)


def fit(folder: Path, minutes: float) -> dict[str, Any]:
    """Run the command, and look at what it left."""
    run = folder.with_name("run")
    command = [sys.executable, "-m", "labelproof", "fit", str(folder), "--output", str(run)]
    command += ["--device", "cpu", "--minutes", f"{minutes:g}"]
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - begin
    record = json.loads((run / "record.json").read_text())
    chosen = record["configuration"]
    return {
        "seconds": round(seconds, 1),
        "accuracy": round(record["curve"]["test_accuracy"][-1], 2),
        **{name: chosen[name] for name in ("network", "augmentation", "epochs", "loss")},
    }


def flat(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Pixels as features."""
    return np.float32(1 / 255) * images.reshape(len(images), -1)


@torch.no_grad()
def frozen_features(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """What the last layer of an untrained ResNet-18 would be given."""
    network = make_network(
        "resnet18",
        num_classes=10,
        input_shape=(3, 32, 32),
        generator=torch.Generator().manual_seed(1),
    )
    network.train()  # an untrained batch norm has no averages
    found: list[torch.Tensor] = []
    head = network.get_submodule("head")
    head.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
    for start in range(0, len(images), 100):
        network(torch.from_numpy(images[start : start + 100]).float() / 127.5 - 1)
    return torch.cat(found).numpy()


def regression(
    inputs: NDArray[np.float32],
    labels: NDArray[np.int64],
    others: NDArray[np.float32],
    true: NDArray[np.int64],
) -> dict[str, float]:
    """Logistic regression of the strength that predicts held-out labels best."""
    begin, held = time.perf_counter(), len(labels) // 5
    models = [
        make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=200))
        for strength in (1e-5, 1e-4, 1e-3)
    ]
    scores = [
        each.fit(inputs[held:], labels[held:]).score(inputs[:held], labels[:held])
        for each in models
    ]
    best = models[int(np.argmax(scores))].fit(inputs, labels)
    seconds = time.perf_counter() - begin
    accuracy = 100 * float(best.score(others, true))
    return {"seconds": round(seconds, 1), "accuracy": round(accuracy, 2)}


def table(entries: list[dict[str, Any]]) -> str:
    """The entries as a table, for the documentation."""
    lines = [
        "| images | `--minutes` | classifier | accuracy | minutes |",
        "|---:|---:|---|---:|---:|",
    ]
    for entry in entries:
        done = entry["fit"]
        rows = {f"`fit`: `{done['network']}`, {done['epochs']} epochs": done}
        rows["logistic regression on pixels"] = entry["pixels"]
        if "frozen" in entry:
            rows["the same on an untrained ResNet-18"] = entry["frozen"]
        for name, found in rows.items():
            asked = f"{entry['minutes']:g}" if found is done else ""
            lines.append(
                f"| {entry['images']:,} | {asked} | {name} | {found['accuracy']:.1f} | "
                f"{found['seconds'] / 60:.1f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
