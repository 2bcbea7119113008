"""Where the time of a training step goes on a GPU, kernel by kernel.

    python benchmarks/kernels.py --dataset cifar10 --output kernels.json
    python benchmarks/kernels.py --dataset cifar10 --inductor coordinate_descent_tuning=true

Trains on random images of the dataset's shape. `--inductor` sets options of torch's compiler, for
trying what they are worth: images a second alone and packed come first, then the kernels of a run
that is alone, by the time they take in a step.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from packing import SHAPES
from torch.profiler import ProfilerActivity, profile
from training import Engine, counts, images_per_second, paper_engine

from labelproof.training.execution import choose_execution
from labelproof.training.record import versions

STEPS = 40


def main(arguments: Sequence[str] | None = None) -> None:
    options = _arguments(arguments)
    configure(options.inductor)
    execution = choose_execution("cuda")
    engine = paper_engine(options.dataset, execution)
    rates = {}
    for count in options.packed:
        engine.grow(count)
        rates[count] = images_per_second(engine.steps(count), options.seconds, execution.device)
        print(f"{options.dataset}, {count} at once: {rates[count]:,.0f} images/s")
    kernels = kernel_times(engine)
    print(table(kernels), flush=True)
    if options.output is not None:
        content = {
            "dataset": options.dataset,
            "inductor": options.inductor,
            "images_per_second": rates,
            "microseconds_a_step": kernels,
            "versions": versions(execution.device),
        }
        options.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def kernel_times(engine: Engine) -> list[dict[str, Any]]:
    """Name, calls and microseconds a step of each kernel of one run, the longest first."""
    steps = engine.steps(1)
    for _ in range(STEPS):
        next(steps)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(STEPS):
            next(steps)
        torch.cuda.synchronize()
    times: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for event in profiled.events() or ():
        if event.device_type.name == "CUDA":
            times[event.name] += event.device_time
            calls[event.name] += 1
    return [
        {
            "kernel": name,
            "calls": round(calls[name] / STEPS, 2),
            "microseconds": round(times[name] / STEPS, 2),
        }
        for name in sorted(times, key=lambda name: -times[name])
    ]


def table(kernels: Sequence[dict[str, Any]]) -> str:
    """Each kernel in a line, after their sum."""
    whole = sum(each["microseconds"] for each in kernels)
    calls = sum(each["calls"] for each in kernels)
    lines = [f"{whole:.0f} microseconds a step in {calls:.0f} kernels"]
    lines += [
        f"{each['microseconds']:8.1f} {each['calls']:6.1f}  "
        + re.sub(r"\s+", " ", each["kernel"])[:150]
        for each in kernels
    ]
    return "\n".join(lines)


def configure(settings: Sequence[str]) -> None:
    """Set options of torch's compiler, each as `NAME=JSON`."""
    import torch._inductor.config as config

    for setting in settings:
        name, value = setting.split("=", 1)
        place: Any = config
        *path, last = name.split(".")
        for part in path:
            place = getattr(place, part)
        setattr(place, last, json.loads(value))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", default="cifar10", choices=list(SHAPES))
    parser.add_argument("--inductor", action="append", default=[], metavar="NAME=JSON")
    parser.add_argument("--packed", type=counts, default=[1, 4], help="runs at once")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--output", type=Path, help="JSON file for the numbers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
