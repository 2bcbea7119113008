"""The tables of the speed page, from what `training.py`, `packing.py` and `kernels.py` measured.

    python benchmarks/speed_tables.py

Writes `training-MACHINE.md`, `packing-MACHINE.md` and `kernels-MACHINE.md` beside the numbers in
`benchmarks/results`; the docs show these files, and a test sees that they are up to date. Attempts
are all measurements that were made on a machine that others used at the same time, with the share
of its CPU time that these took, `null` where nobody looked.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["AIMS", "claim", "kernel_table", "packing_table", "tables", "training_tables"]

RESULTS = Path(__file__).parent / "results"

AIMS = {"mnist": 40, "cifar10": 20, "cifar100": 8}
"""How many times the habit's speed was aimed at on a GPU, several runs at once."""

NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
ALONE = "1 at once"

KINDS = {
    "convolutions": ("fprop", "dgrad", "wgrad", "Conv2d", "__5x_cudnn"),
    "batch norm, ReLU, pooling": ("native_batch_norm", "max_pool", "relu", "threshold_backward"),
    "gradients laid side by side, clipping, SGD": ("linalg_vector_norm", "cat_", "for_fused"),
}
"""Kinds of kernels by what their names hold; the first that fits counts."""

REST = "all else: batches, casts, linear layers, loss, counts"


def main() -> None:
    for name, text in tables(RESULTS).items():
        (RESULTS / name).write_text(text, encoding="utf-8")
        print(RESULTS / name)


def tables(folder: Path) -> dict[str, str]:
    """The text of every table by its file's name, from all numbers in a folder."""
    found: dict[str, str] = {}
    for machine in sorted({path.stem.split("-")[1] for path in folder.glob("training-*.json")}):
        contents = [_read(folder / f"training-{machine}-{name}.json") for name in NAMES]
        found[f"training-{machine}.md"] = training_tables([each for each in contents if each])
    for path in sorted(folder.glob("packing-*.json")):
        machine = path.stem.split("-")[1]
        found[f"packing-{machine}.md"] = packing_table(json.loads(path.read_text("utf-8")))
    for machine in sorted({path.stem.split("-")[1] for path in folder.glob("kernels-*.json")}):
        read = [json.loads(path.read_text("utf-8")) for path in folder.glob(f"kernels-{machine}-*")]
        found[f"kernels-{machine}.md"] = kernel_table(
            sorted(read, key=lambda each: (each["dataset"], each["inductor"]))
        )
    return found


def training_tables(contents: Sequence[Mapping[str, Any]]) -> str:
    """What came out, then every measurement behind it."""
    cells = [cell for content in contents for cell in content["measurements"]]
    packed = any(len(cell["ratio"]) > 1 for cell in cells)
    lines = _summary_on_gpu(cells) if packed else _summary_on_cpu(cells)
    if packed:
        lines += ["", *_details(cells)]
    return "\n".join([*lines, "", _made_with(contents[0]["versions"]), ""])


def packing_table(content: Mapping[str, Any]) -> str:
    """For each run, whether it came to the same."""
    lines = [
        "| run | the same weights alone again | the same metrics alone again "
        "| the same weights packed | the same metrics packed |",
        "|---|---|---|---|---|",
    ]
    again, packed = content["equal"]["again"], content["equal"]["packed"]
    for run in again:
        found = (again[run]["weights"], again[run]["metrics"])
        found += (packed[run]["weights"], packed[run]["metrics"])
        lines.append(f"| {run} | " + " | ".join("yes" if same else "NO" for same in found) + " |")
    about = f"{content['epochs']} epochs, {content['at_once']} at once."
    return "\n".join([*lines, "", f"{about} {_made_with(content['versions'])}", ""])


def kernel_table(contents: Sequence[Mapping[str, Any]]) -> str:
    """The time of a step by kinds of kernels, and the images a second of each variant."""
    usual = [each for each in contents if not each["inductor"]]
    names = [NAMES[each["dataset"]] for each in usual]
    shares = [_shares(each["microseconds_a_step"]) for each in usual]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for kind in (*KINDS, REST):
        lines.append(f"| {kind} | " + " | ".join(f"{each[kind]:.0%}" for each in shares) + " |")
    kernels = [sum(each["calls"] for each in content["microseconds_a_step"]) for content in usual]
    whole = [
        sum(each["microseconds"] for each in content["microseconds_a_step"]) for content in usual
    ]
    lines.append("| kernels in a step | " + " | ".join(f"{count:.0f}" for count in kernels) + " |")
    lines.append("| microseconds | " + " | ".join(f"{time:,.0f}" for time in whole) + " |")
    lines += ["", "| | compiler's options | runs at once | images/s | ratio |"]
    lines += ["|---|---|---:|---:|---:|"]
    for content in contents:
        (plain,) = [each for each in usual if each["dataset"] == content["dataset"]]
        options = ", ".join(f"`{each}`" for each in content["inductor"]) or "usual"
        for count, rate in content["images_per_second"].items():
            ratio = rate / plain["images_per_second"][count]
            lines.append(
                f"| {NAMES[content['dataset']]} | {options} | {count} | {rate:,.0f} | {ratio:.2f} |"
            )
    return "\n".join([*lines, "", _made_with(contents[0]["versions"]), ""])


def _shares(kernels: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    times = dict.fromkeys((*KINDS, REST), 0.0)
    for each in kernels:
        name = each["kernel"]
        fits = (kind for kind, parts in KINDS.items() if any(part in name for part in parts))
        times[next(fits, REST)] += each["microseconds"]
    whole = sum(times.values())
    return {kind: time / whole for kind, time in times.items()}


def claim(folder: Path, machine: str) -> str:
    """The speed in one phrase, for pages that no build fills in.

    >>> claim(RESULTS, "h200").startswith("MNIST ")
    True
    """
    parts = []
    for name, shown in NAMES.items():
        (cell,) = json.loads((folder / f"training-{machine}-{name}.json").read_text("utf-8"))[
            "measurements"
        ]
        ratios = cell["ratio"]
        parts.append(f"{shown} {ratios[ALONE]:.1f} ({max(ratios.values()):.1f})")
    return ", ".join(parts)


def _summary_on_gpu(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "| | network | the habit, images/s | engine alone | packed | runs at once | aim, packed "
        "| memory of a run | until the first step |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for cell in cells:
        most = max(cell["ratio"], key=lambda key: cell["ratio"][key])
        lines.append(
            f"| {_name(cell)} | `{cell['network']}` | {cell['images_per_second']['field']:,.0f} "
            f"| {cell['ratio'][ALONE]:.1f}x | {cell['ratio'][most]:.1f}x | {_count(most)} "
            f"| {AIMS[cell['dataset']]}x "
            f"| {statistics.median(cell['megabytes_of_each_further_run']):,.0f} MB "
            f"| {cell['seconds_until_the_first_step']:.0f} s |"
        )
    return lines


def _summary_on_cpu(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "| | network | the habit, images/s | engine, images/s | ratio | to its fastest turn |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for cell in cells:
        rates = cell["images_per_second"]
        lines.append(
            f"| {_name(cell)} | `{cell['network']}` | {rates['field']:,.0f} | {rates[ALONE]:,.0f} "
            f"| {cell['ratio'][ALONE]:.1f}x | {_to_fastest(cell, ALONE):.1f}x |"
        )
    return lines


def _details(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        "| | runs at once | images/s | lowest and highest turn | ratio | to the habit's fastest "
        "turn | share of the arithmetic limit |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for cell in cells:
        for key, rate in cell["images_per_second"].items():
            turns = cell["turns"][key]
            ratio = (
                "1 | "
                if key == "field"
                else f"{cell['ratio'][key]:.1f} | {_to_fastest(cell, key):.1f}"
            )
            lines.append(
                f"| {_name(cell)} | {'the habit' if key == 'field' else _count(key)} | {rate:,.0f} "
                f"| {min(turns):,.0f} to {max(turns):,.0f} | {ratio} "
                f"| {cell['share_of_arithmetic_limit'][key]:.1%} |"
            )
    return lines


def _to_fastest(cell: Mapping[str, Any], key: str) -> float:
    return cell["images_per_second"][key] / max(cell["turns"]["field"])


def _name(cell: Mapping[str, Any]) -> str:
    return NAMES[cell["dataset"]]


def _count(key: str) -> str:
    return key.removesuffix(" at once")


def _made_with(versions: Mapping[str, str]) -> str:
    place = versions.get("device", versions["machine"])
    cuda = f", CUDA {versions['cuda']}" if "cuda" in versions else ""
    return (
        f"Measured on {place} with torch {versions['torch']}{cuda}, Python {versions['python']}, "
        f"labelproof {versions['labelproof']}."
    )


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


if __name__ == "__main__":
    main()
