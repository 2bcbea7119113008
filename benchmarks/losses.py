"""What the regulariser costs: CE+SR against torch's cross entropy, forward and backward.

Every line is a ratio to eager `torch.nn.functional.cross_entropy` measured in the same run on the
same machine, so that machines can be compared.

    python benchmarks/losses.py                      # the CPU
    python benchmarks/losses.py --device cuda        # a GPU
    python benchmarks/losses.py --output losses.json # the numbers, and losses.md beside them

Time is the median over repetitions after a warm-up, by CUDA events on a GPU. Memory is the peak
above the logits, in multiples of the logits' own size: the allocator's counter on a GPU, the
profiler's log of allocations on a CPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from labelproof import __version__, parse_loss

SHAPES = ((128, 10), (512, 1000), (4096, 32768))
DTYPES = (torch.float32, torch.bfloat16)
REGULARISED = "ce+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,normalize=true)"
PLAIN = "ce"
LossFunction = Callable[[Tensor, Tensor], Tensor]


class Measurement(NamedTuple):
    """One cell of the table."""

    shape: tuple[int, int]
    dtype: str
    loss: str
    mode: str
    microseconds: float
    ratio: float
    memory: float


def main() -> None:
    options = _arguments()
    if options.table is not None:
        write_table(options.table)
        return
    device = torch.device(options.device)
    measurements = []
    for shape in SHAPES:
        for dtype in DTYPES:
            measurements += measure(shape, dtype, device, options.seconds)
    for line in table(measurements):
        print(line)
    if options.output is not None:
        content = {
            "hardware": hardware(device),
            "measurements": [m._asdict() for m in measurements],
        }
        options.output.write_text(json.dumps(content, indent=1) + "\n")
        write_table(options.output)


def measure(
    shape: tuple[int, int], dtype: torch.dtype, device: torch.device, seconds: float
) -> list[Measurement]:
    """Time torch's cross entropy and ours at one shape and precision."""
    generator = torch.Generator().manual_seed(0)
    # Random logits: zeros would make every exponential, and on some GPUs every product, cheaper.
    logits = torch.randn(shape, generator=generator).to(device, dtype).requires_grad_()
    target = torch.randint(shape[1], (shape[0],), generator=generator).to(device)
    candidates: list[tuple[str, LossFunction]] = [
        ("F.cross_entropy", torch.nn.functional.cross_entropy),
        (PLAIN, parse_loss(PLAIN).to(device)),
        ("ce+sr", parse_loss(REGULARISED).to(device)),
    ]
    found: list[Measurement] = []
    yardstick = 0.0
    for name, loss in candidates:
        for mode in ("eager", "compiled"):
            function = torch.compile(loss, fullgraph=True) if mode == "compiled" else loss
            microseconds = _time(function, logits, target, seconds)
            if not found:
                yardstick = microseconds
            memory = _memory(function, logits, target)
            found.append(
                Measurement(
                    shape,
                    str(dtype).removeprefix("torch."),
                    name,
                    mode,
                    round(microseconds, 2),
                    round(microseconds / yardstick, 2),
                    memory,
                )
            )
            torch.compiler.reset()
    return found


def write_table(numbers: Path) -> None:
    """Write the page of a file of numbers beside it, as the docs show it."""
    content = json.loads(numbers.read_text())
    made = ", ".join(f"{key} {value}" for key, value in content["hardware"].items())
    measurements = [Measurement(**cell) for cell in content["measurements"]]
    numbers.with_suffix(".md").write_text(
        "\n".join([*table(measurements), "", f"Measured with {made}.", ""])
    )


def table(measurements: list[Measurement]) -> list[str]:
    """The measurements as a markdown table."""
    lines = [
        "| logits | precision | loss | mode | time (µs) | / F.cross_entropy | memory / logits |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    for cell in measurements:
        shape = " x ".join(str(size) for size in cell.shape)
        lines.append(
            f"| {shape} | {cell.dtype} | {cell.loss} | {cell.mode} | {cell.microseconds:.0f} "
            f"| {cell.ratio:.2f} | {cell.memory:.1f} |"
        )
    return lines


def hardware(device: torch.device) -> dict[str, str]:
    """What the numbers were measured on and with."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "device": name,
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "labelproof": __version__,
    }


def _time(function: LossFunction, logits: Tensor, target: Tensor, seconds: float) -> float:
    """Median microseconds of a forward and a backward pass."""

    def step() -> None:
        logits.grad = None
        function(logits, target).backward()

    step()  # compiles, and takes what memory it needs
    once = max(_clock(step, logits.device), 1e-6)
    repetitions = int(min(max(seconds / once, 3), 500))
    return 1e6 * statistics.median(_clock(step, logits.device) for _ in range(repetitions))


def _clock(step: Callable[[], None], device: torch.device) -> float:
    if device.type != "cuda":
        start = time.perf_counter()
        step()
        return time.perf_counter() - start
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def _memory(function: LossFunction, logits: Tensor, target: Tensor) -> float:
    """Peak bytes above the logits of one pass, in multiples of the logits' bytes."""
    logits.grad = None
    step = _peak_cuda if logits.device.type == "cuda" else _peak_cpu
    extra = step(lambda: function(logits, target).backward())
    return round(extra / (logits.numel() * logits.element_size()), 2)


def _peak_cuda(step: Callable[[], None]) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _peak_cpu(step: Callable[[], None]) -> int:
    """The CPU has no counter of its own, so the profiler's log of what is taken and given back."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        step()
    assert profile.profiler is not None
    assert profile.profiler.kineto_results is not None
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue]
        peak = max(peak, held)
    return peak


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or mps")
    parser.add_argument("--seconds", type=float, default=1.0, help="time spent on each cell")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    parser.add_argument("--table", type=Path, help="write the table of such a file anew, only")
    return parser.parse_args()


if __name__ == "__main__":
    main()
