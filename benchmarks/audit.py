"""How well wrong labels are found, beside cleanlab, on noise of many kinds.

Networks are trained by cross-validation, with plain cross entropy and with the loss that
`labelproof audit` takes for frequent classes, on the same folds for the same number of epochs.
Then, in one run, four rows for each set: cleanlab on the probabilities of the plain networks and on
ours, and the audit on both. cleanlab is given the best of its three scores, by the true labels,
which no one has in earnest.

    python benchmarks/audit.py predict --device cuda --human DIR --output predictions/
    python benchmarks/audit.py retrain --device cuda --human DIR --output predictions/
    python -m venv rival && rival/bin/pip install cleanlab==2.9.0
    python benchmarks/audit.py score --rival rival/bin/python --output predictions/
    python benchmarks/audit.py scale --rival rival/bin/python
    python benchmarks/audit.py table

`--human` is the folder of cifar10n.npz and cifar100n.npz. Given again, `predict` and `retrain` go
on where they were cut off. The true labels are looked at when all is trained, to count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from labelproof.audit import CrossValidation, Findings, audit_labels, audit_logits, audit_loss
from labelproof.data import Dataset, load_dataset
from labelproof.fitting.recipe import choose_recipe, look_at
from labelproof.training import (
    Configuration,
    Examples,
    Execution,
    Job,
    choose_execution,
    train_runs,
)
from labelproof.training.files import write_text
from labelproof.training.record import versions
from labelproof.training.run_folder import RunFolder

RESULTS = Path(__file__).parent / "results"
FOLDS = 3
EPOCHS = {"mnist": 10, "cifar10": 20, "cifar100": 20}
"""As few as tell the losses apart."""
AT_ONCE = {"mnist": 10, "cifar10": 6, "cifar100": 6}
SEED = 1


@dataclass(frozen=True)
class Set:
    """A dataset with wrong labels, and whether the loss of a retraining is measured on it."""

    data: str
    noise: str
    retrained: bool = False

    @property
    def key(self) -> str:
        """What its files are called."""
        return f"{self.data}-{self.noise.replace(':', '-')}"

    @property
    def human(self) -> str | None:
        """The file of human labels."""
        return f"{self.data}n.npz" if self.noise.startswith("human") else None


SETS = (
    Set("mnist", "symmetric:0.2"),
    Set("mnist", "symmetric:0.4"),
    Set("mnist", "asymmetric:0.4"),
    Set("cifar10", "symmetric:0.2"),
    Set("cifar10", "symmetric:0.4", retrained=True),
    Set("cifar10", "asymmetric:0.4", retrained=True),
    Set("cifar10", "human:aggregate"),
    Set("cifar10", "human:random1"),
    Set("cifar10", "human:worse", retrained=True),
    Set("cifar100", "human:noisy", retrained=True),
)
WAYS = ("plain", "ours")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=("predict", "retrain", "score", "scale", "table"))
    parser.add_argument("--output", type=Path, default=Path("audit-predictions"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", nargs="+", default=list(EPOCHS), help="datasets to take")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--human", type=Path, help="folder of cifar10n.npz and cifar100n.npz")
    parser.add_argument("--rival", type=Path, help="a Python that has cleanlab")
    parser.add_argument("--epochs", type=int, help="instead of those of each dataset")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    chosen = [each for each in SETS if each.data in options.data]
    if options.stage in ("predict", "retrain"):
        stage = predict if options.stage == "predict" else retrain
        for name in options.data:
            stage(name, [each for each in chosen if each.data == name], options)
    elif options.stage == "score":
        write(options.results / "audit.json", score(chosen, options))
    elif options.stage == "scale":
        write(options.results / "audit-scale.json", scale(options.rival))
    for name, text in tables(options.results).items():
        (options.results / name).write_text(text, encoding="utf-8")
        print(text)


def write(path: Path, values: Any) -> None:
    write_text(path, json.dumps(values, indent=1) + "\n")


# What is trained.


def recipe(dataset: Dataset, each: Set, way: str, epochs: int | None) -> Configuration:
    """How a network is trained: in both ways alike, but for the loss."""
    return choose_recipe(
        dataset,
        data=each.data,
        fast=True,
        noise=each.noise,
        epochs=epochs or EPOCHS[each.data],
        loss="ce" if way == "plain" else audit_loss(look_at(dataset)),
        seed=SEED,
    )


def predict(name: str, sets: Sequence[Set], options: argparse.Namespace) -> None:
    """Train the networks of all folds, several at once, and keep what they say."""
    execution = choose_execution(options.device)
    dataset = load_dataset(name, root=options.data_root)
    owners: dict[Configuration, tuple[Set, str, CrossValidation]] = {}
    jobs: list[Job] = []
    for each in sets:
        for way in WAYS:
            if (options.output / f"{each.key}-{way}.npz").exists():
                continue
            validation = CrossValidation(
                dataset,
                recipe(dataset, each, way, options.epochs),
                folds=FOLDS,
                folder=options.output / "runs" / f"{each.key}-{way}",
                human=options.human / each.human if each.human else None,
            )
            for job in validation.jobs:
                owners[job.configuration] = each, way, validation
                jobs.append(job)
    for event in train_runs(
        jobs,
        execution,
        load=lambda configuration: owners[configuration][2].load(configuration),
        at_once=AT_ONCE[name],
        checkpoint_seconds=1e9,
    ):
        if event.kind == "failed":
            raise event.value
        if event.kind == "finished":
            each, way, validation = owners[event.job.configuration]
            print(f"{each.key} {way}: {event.value.curve['validation_accuracy'][-1]:.2f}")
            if all(
                job.folder and RunFolder(job.folder).record(job.configuration)
                for job in validation.jobs
            ):
                keep(options.output / f"{each.key}-{way}.npz", dataset, validation, execution)


def keep(path: Path, dataset: Dataset, validation: CrossValidation, execution: Execution) -> None:
    found = validation.predictions()
    about = {
        "configuration": validation.configuration.as_values(),
        "folds": len(validation.jobs),
        "versions": versions(execution.device),
    }
    np.savez_compressed(
        path,
        logits=found.logits.astype(np.float16),
        given=found.given.astype(np.int16),
        true=dataset.train.labels[found.index].astype(np.int16),
        about=np.array(json.dumps(about)),
    )


def retrain(name: str, sets: Sequence[Set], options: argparse.Namespace) -> None:
    """Train on the labels as they are, without the suspects, and with the suggestions accepted."""
    execution = choose_execution(options.device)
    dataset = load_dataset(name, root=options.data_root)
    path = options.output / f"retrained-{name}.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    examples: dict[Configuration, tuple[str, str, Examples]] = {}
    for each in sets:
        if not each.retrained:
            continue
        logits, given, _, _ = read(options.output / f"{each.key}-ours.npz")
        findings = audit_logits(logits, given)
        for number, (what, way, given, used) in enumerate(variants(findings)):
            if what in results.get(each.key, {}):
                continue
            # Another seed for each, since that is what tells them apart.
            configuration = replace(
                recipe(dataset, each, way, options.epochs), seed=SEED + number, validation=0.0
            )
            found = Examples(dataset, used, given, None, 0.0)
            examples[configuration] = each.key, what, found
    jobs = [Job(configuration) for configuration in examples]
    for event in train_runs(
        jobs,
        execution,
        load=lambda configuration: examples[configuration][2],
        at_once=AT_ONCE[name],
    ):
        if event.kind == "failed":
            raise event.value
        if event.kind == "finished":
            key, what, _ = examples[event.job.configuration]
            results.setdefault(key, {})[what] = round(event.value.final_accuracy, 2)
            print(f"{key} {what}: {event.value.final_accuracy:.2f}")
            write(path, results)


def variants(
    findings: Findings,
) -> Iterator[tuple[str, str, NDArray[np.int64], NDArray[np.int64]]]:
    """What is done with the findings, with which loss, on which labels of which samples."""
    every = np.arange(len(findings))
    rest = np.setdiff1d(every, findings.suspects)
    accepted = findings.given.copy()
    accepted[findings.suspects] = findings.suggested[findings.suspects]
    yield "as given", "plain", findings.given, every
    yield "without suspects", "plain", findings.given, rest
    yield "suggestions accepted", "plain", accepted, every
    yield "as given, robust loss", "ours", findings.given, every


def read(
    path: Path,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], dict[str, Any]]:
    """Logits, given and true labels, and what they were made with."""
    with np.load(path, allow_pickle=False) as arrays:
        return (
            arrays["logits"].astype(np.float32),
            arrays["given"].astype(np.int64),
            arrays["true"].astype(np.int64),
            json.loads(str(arrays["about"])),
        )


# What is counted.


def score(sets: Sequence[Set], options: argparse.Namespace) -> dict[str, Any]:
    """Four rows for each set, with the true labels."""
    rows: dict[str, Any] = {}
    about: dict[str, Any] = {}
    for each in sets:
        plain, ours = (options.output / f"{each.key}-{way}.npz" for way in WAYS)
        if not (plain.exists() and ours.exists()):
            print(f"{each.key}: no predictions", file=sys.stderr)
            continue
        _, given, true, about[each.key] = read(ours)
        rows[each.key] = {
            "wrong": float((given != true).mean()),
            "cleanlab on CE": rival(plain, options.rival),
            "cleanlab on ours": rival(ours, options.rival),
            "ours on CE": own(plain),
            "ours": own(ours),
        }
        print(each.key, json.dumps(rows[each.key], indent=1))
    retrained = {
        key: found
        for name in EPOCHS
        if (path := options.output / f"retrained-{name}.json").exists()
        for key, found in json.loads(path.read_text()).items()
    }
    return {"rows": rows, "retrained": retrained, "about": about}


def measures(
    suspicion: NDArray[np.floating], wrong: NDArray[np.bool_], estimated: int
) -> dict[str, float]:
    """Average precision, and precision among as many as are said to be wrong."""
    from sklearn.metrics import average_precision_score

    worst = np.argsort(-suspicion, kind="stable")[: max(estimated, 1)]
    return {
        "average_precision": float(average_precision_score(wrong, suspicion)),
        "precision": float(wrong[worst].mean()),
    }


def own(path: Path) -> dict[str, Any]:
    """What an audit comes to on the predictions in a file."""
    logits, given, true, _ = read(path)
    begun = time.perf_counter()
    findings = audit_logits(logits, given)
    seconds = time.perf_counter() - begun
    return {
        **measures(findings.score, given != true, findings.estimated_count),
        "rate": findings.noise_rate.value,
        "low": findings.noise_rate.low,
        "high": findings.noise_rate.high,
        "shared_doubts": findings.shared_doubts,
        "seconds": round(seconds, 3),
        "accuracy": float((logits.argmax(axis=1) == true).mean()),
    }


def rival(path: Path, python: Path) -> dict[str, Any]:
    """What cleanlab comes to on the predictions in a file."""
    logits, given, true, _ = read(path)
    wrong = given != true
    probabilities = torch.softmax(torch.from_numpy(logits), dim=1).numpy()
    # Not above: the tests look at the tables alone, from another folder.
    from audit_cleanlab import ask

    found = ask(python, probabilities, given)
    scores = {name[6:]: each for name, each in found.items() if name.startswith("score_")}
    measured = {name: measures(each, wrong, int(found["issues"])) for name, each in scores.items()}
    best = max(measured, key=lambda name: measured[name]["average_precision"])
    return {
        **measured[best],
        "score": best,
        "average_precision_by_default": measured["self_confidence"]["average_precision"],
        "rate": float(found["rate"]),
        "issues": int(found["issues"]),
        "seconds": round(float(found["seconds"]), 3),
        "accuracy": float((logits.argmax(axis=1) == true).mean()),
        "version": str(found["version"]),
    }


# How it grows.


def scale(
    python: Path, samples: int = 1_000_000, classes: int = 100, rounds: int = 7
) -> dict[str, Any]:
    """Seconds, those of all cores, and peak memory on a million predictions by a hundred classes.

    Medians of several rounds in turn, since a busy machine changes its pace.
    """
    from audit_cleanlab import run

    os.environ["OMP_NUM_THREADS"] = "1"
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probabilities.npy"
        make_predictions(source, samples, classes)
        answer = Path(folder) / "answer.npz"
        for _ in range(rounds):
            run(python, source, answer)
            with np.load(answer) as found:
                names = ("seconds", "wall", "batched", "batched_wall", "megabytes", "rate")
                theirs.append({name: float(found[name]) for name in names})
                version = str(found["version"])
            # In a process of its own, so that its peak is its own.
            command = [sys.executable, __file__, "scale-alone", str(source)]
            alone = subprocess.run(command, check=True, capture_output=True, text=True)
            ours.append(json.loads(alone.stdout))
    return {
        "samples": samples,
        "classes": classes,
        "rounds": rounds,
        "cores": joblib.cpu_count(),
        "true": RATE,
        "ours": pd.DataFrame(ours).median().round(4).to_dict(),
        "cleanlab": pd.DataFrame(theirs).median().round(4).to_dict() | {"version": version},
        "versions": versions(),
    }


RATE = 0.2


def make_predictions(path: Path, samples: int, classes: int) -> None:
    """Predictions that are right for most, and labels of which a fifth is wrong."""
    generator = np.random.default_rng(0)
    table = np.lib.format.open_memmap(path, "w+", np.float32, (samples, classes))
    given = np.empty(samples, dtype=np.int64)
    step = 50_000
    for begin in range(0, samples, step):
        size = min(step, samples - begin)
        true = generator.integers(classes, size=size)
        logits = generator.normal(0, 1.5, (size, classes)).astype(np.float32)
        logits[np.arange(size), true] += 8
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        table[begin : begin + size] = odds / odds.sum(axis=1, keepdims=True)
        wrong = generator.random(size) < RATE
        other = (true + generator.integers(1, classes, size)) % classes
        given[begin : begin + size] = np.where(wrong, other, true)
    table.flush()
    np.save(path.with_name("given.npy"), given)


def scale_alone(path: Path) -> None:
    """What the process of our own measurement does."""
    from audit_cleanlab import peak_memory

    from labelproof.audit import read_probabilities

    given = np.load(path.with_name("given.npy"))
    begun, clock = time.process_time(), time.perf_counter()
    findings = audit_labels(read_probabilities(path), given)
    print(
        json.dumps(
            {
                "seconds": round(time.process_time() - begun, 2),
                "wall": round(time.perf_counter() - clock, 2),
                "megabytes": round(peak_memory()),
                "rate": findings.noise_rate.value,
            }
        )
    )


# What is shown.


def tables(folder: Path) -> dict[str, str]:
    """The tables of the numbers in a folder, by the names of their files."""
    found: dict[str, str] = {}
    if (folder / "audit.json").exists():
        values = json.loads((folder / "audit.json").read_text())
        found["audit.md"] = accuracy_table(values["rows"])
        found["audit-retrained.md"] = retrained_table(values["retrained"])
    if (folder / "audit-scale.json").exists():
        found["audit-scale.md"] = scale_table(json.loads((folder / "audit-scale.json").read_text()))
    return found


ROWS = ("cleanlab on CE", "cleanlab on ours", "ours on CE", "ours")


def accuracy_table(rows: dict[str, Any]) -> str:
    lines = [
        "| set | wrong | row | average precision | precision at the estimated count "
        "| estimated rate | error |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for key, each in rows.items():
        best = max(ROWS, key=lambda row: each[row]["average_precision"])
        for row in ROWS:
            found = each[row]
            precision = f"{100 * found['average_precision']:.2f}"
            lines.append(
                f"| {key if row == ROWS[0] else ''} "
                f"| {100 * each['wrong']:.2f} | {row} "
                f"| {f'**{precision}**' if row == best else precision} "
                f"| {100 * found['precision']:.2f} | {100 * found['rate']:.2f} "
                f"| {100 * (found['rate'] - each['wrong']):+.2f} |"
            )
    return "\n".join(lines) + "\n"


def retrained_table(retrained: dict[str, Any]) -> str:
    names = ("as given", "without suspects", "suggestions accepted", "as given, robust loss")
    lines = ["| set | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for key, found in retrained.items():
        cells = [f"{found[name]:.2f}" if name in found else "–" for name in names]
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def scale_table(found: dict[str, Any]) -> str:
    header = "| | seconds | seconds of all cores | peak memory (MB) | estimated rate |"
    lines = [header, "|---|---:|---:|---:|---:|"]
    for name in ("ours", "cleanlab"):
        each = found[name]
        lines.append(
            f"| {name} | {each['wall']:.2f} | {each['seconds']:.2f} | {each['megabytes']:,.0f} "
            f"| {100 * each['rate']:.2f}% of {100 * found['true']:.0f}% |"
        )
    batched = found["cleanlab"]
    times = f"{batched['batched_wall']:.2f} | {batched['batched']:.2f}"
    lines.append(f"| cleanlab, batched | {times} | | none |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["scale-alone"]:
        scale_alone(Path(sys.argv[2]))
    else:
        main()
