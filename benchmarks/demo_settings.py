"""How the demo's regulariser was chosen: by accuracy on held-out NOISY training labels.

No test image and no clean label is looked at. A fifth of the noisy training set is held out, each
candidate trains on the rest with the demo's network and setting, and the one with the best mean
noisy accuracy over the losses and seeds wins. Seeds are others than the demo's.

    python benchmarks/demo_settings.py  # some four minutes on two cores; results/demo_settings.txt
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from labelproof.data import Split, load_digits
from labelproof.experiments.demo import BASES, SETTING
from labelproof.noise import corrupt, symmetric_matrix
from labelproof.training import Job, choose_examples, choose_execution, train_runs

RATE = 0.4
WEIGHTS = ((4, 1.05), (4, 1.1), (5, 1.1), (3, 1.15), (4, 1.15), (5, 1.15))
TEMPERATURES = (0.5,)


@dataclass(frozen=True)
class Trial:
    """One candidate with one base loss and one seed."""

    regulariser: str
    base: str
    seed: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="seeds for each candidate")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    candidates = [""] + [
        f"sr(tau={tau:g},p=0.1,lambda0={start:g},rho={growth:g},normalize=false)"
        for tau in TEMPERATURES
        for start, growth in WEIGHTS
    ]
    trials = [
        Trial(regulariser, base, 100 + seed)
        for regulariser in candidates
        for base in BASES.values()
        for seed in range(options.seeds)
    ]
    found: dict[str, dict[str, list[float]]] = {}
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, torch.set_num_threads, (1,)) as pool:
        for trial, accuracy in zip(trials, pool.imap(validate, trials), strict=True):
            found.setdefault(trial.regulariser, {}).setdefault(trial.base, []).append(accuracy)
    print(
        f"Accuracy on held-out labels of which {RATE:.0%} are wrong, so {1 - RATE:.0%} is perfect."
    )
    ranked = sorted(found, key=lambda name: -mean(mean(v) for v in found[name].values()))
    for name in ranked:
        cells = "  ".join(f"{base} {mean(values):5.2f}" for base, values in found[name].items())
        overall = mean(mean(values) for values in found[name].values())
        print(f"{overall:6.2f}  {name or '(none)':60} {cells}")


def validate(trial: Trial) -> float:
    """Train on four fifths of the noisy labels; return the accuracy on the other fifth's."""
    digits = load_digits()
    noisy = corrupt(digits.train.labels, symmetric_matrix(10, RATE), seed=trial.seed).noisy
    kept, held = train_test_split(
        np.arange(len(noisy)), test_size=0.2, random_state=trial.seed, stratify=noisy
    )
    images = digits.train.array
    splits = {
        "train": Split(images[kept], noisy[kept]),
        "test": Split(images[held], noisy[held]),
    }
    # Not clean: the labels that are learned from and measured with are the noisy ones.
    data = replace(digits, splits=splits, clean=False)
    loss = "+".join(part for part in (trial.base, trial.regulariser) if part)
    configuration = replace(SETTING, noise="none", loss=loss, seed=trial.seed)
    accuracy = 0.0
    for event in train_runs(
        [Job(configuration)],
        choose_execution("cpu"),
        load=lambda configuration: choose_examples(configuration, data),
    ):
        if event.kind == "failed":
            raise event.value
        if event.kind == "epoch":
            accuracy = event.value["test_accuracy"]
    return accuracy


if __name__ == "__main__":
    main()
