"""What cleanlab says about labels: the rival of `audit.py`, run by a Python that has it.

    python -m venv rival && rival/bin/pip install cleanlab==2.9.0
    rival/bin/python benchmarks/audit_cleanlab.py PREDICTIONS.npz ANSWER.npz

The first file has `probabilities` and `given`, or names a `.npy` file of probabilities beside one
of labels; the second gets `score` under each of cleanlab's three ways to score, the rate and count
that it estimates, which labels it suspects, and the seconds of processor time and peak memory that
it took; of a `.npy` file also the seconds of its batched form. It needs nothing of labelproof.
`ask` does all this from a Python that has labelproof and no cleanlab.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def ask(
    python: Path, probabilities: NDArray[np.floating], given: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """What cleanlab answers, by another Python."""
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder) / "source.npz", Path(folder) / "answer.npz"
        np.savez(source, probabilities=probabilities, given=given)
        run(python, source, answer)
        with np.load(answer) as found:
            return {name: found[name] for name in found.files}


def run(python: Path, source: Path, answer: Path) -> None:
    """Run this file by another Python."""
    subprocess.run([python, __file__, source, answer], check=True)


def peak_memory() -> float:
    """The most memory that this process has had, in MB.

    Not by `getrusage`, which counts what the process that started this one had.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def main() -> None:
    source, answer = sys.argv[1:3]
    if source.endswith(".npz"):
        with np.load(source) as arrays:
            probabilities, given = arrays["probabilities"], arrays["given"]
    else:
        probabilities = np.load(source, mmap_mode="r")
        given = np.load(source.replace("probabilities", "given"))

    # Not among the developers' packages: it is in the environment that this script is run by.
    import cleanlab  # pyright: ignore[reportMissingImports]
    from cleanlab.count import (  # pyright: ignore[reportMissingImports]
        compute_confident_joint,
        estimate_joint,
        num_label_issues,
    )
    from cleanlab.filter import find_label_issues  # pyright: ignore[reportMissingImports]
    from cleanlab.rank import (  # pyright: ignore[reportMissingImports]
        get_label_quality_scores,
    )

    begun, clock = time.process_time(), time.perf_counter()
    joint = compute_confident_joint(given, probabilities)
    shares = estimate_joint(given, probabilities, confident_joint=joint)
    issues = num_label_issues(given, probabilities, confident_joint=joint)
    methods = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
    first = {methods[0]: get_label_quality_scores(given, probabilities, method=methods[0])}
    # What a user waits for is one score; the others are there to take the best of.
    seconds, wall = time.process_time() - begun, time.perf_counter() - clock
    memory = peak_memory()
    scores = first | {
        method: get_label_quality_scores(given, probabilities, method=method)
        for method in (methods[1:] if source.endswith(".npz") else ())
    }
    batched = batched_wall = 0.0
    if not source.endswith(".npz"):
        from cleanlab.experimental.label_issues_batched import (  # pyright: ignore[reportMissingImports]
            find_label_issues_batched,
        )

        # One process: with several, its default, it is far slower on two cores.
        begun, clock = time.process_time(), time.perf_counter()
        find_label_issues_batched(labels=given, pred_probs=probabilities, verbose=False, n_jobs=1)
        batched, batched_wall = time.process_time() - begun, time.perf_counter() - clock
    suspected = (
        find_label_issues(given, probabilities)
        if source.endswith(".npz")
        else np.empty(0, np.bool_)
    )
    np.savez(
        answer,
        suspected=suspected,
        rate=1 - np.trace(shares),
        issues=issues,
        seconds=seconds,
        wall=wall,
        batched=batched,
        batched_wall=batched_wall,
        megabytes=memory,
        version=cleanlab.__version__,
        allow_pickle=False,
        **{f"score_{method}": 1 - np.asarray(score) for method, score in scores.items()},
    )


if __name__ == "__main__":
    main()
