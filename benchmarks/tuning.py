"""How much accuracy is lost by choosing with noisy labels alone: the regret of `labelproof tune`.

The search sees noisy labels and nothing else. Afterwards every setting it tried is trained in full
on all noisy labels, and only then the clean test images are looked at. The regret is the best clean
accuracy among the tried settings minus that of the chosen one, after the last epoch. A best of many
is lucky on few test images, and two trainings of one setting differ; so there are --repeats of
each, and the last column compares means over the seeds.

    python benchmarks/tuning.py --dataset digits --noise symmetric:0.4 --output results.json
    python benchmarks/tuning.py --table results.json --markdown tuning.md

Given again, the command goes on where it was cut off; searches under way are kept in files of their
own beside the results.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from labelproof.data import Dataset, load_dataset
from labelproof.training import (
    Configuration,
    Event,
    Examples,
    Execution,
    Job,
    choose_examples,
    choose_execution,
    train_runs,
)
from labelproof.training.files import write_text
from labelproof.training.record import versions
from labelproof.tuning import Trial, tune

SETTINGS: dict[str, dict[str, Any]] = {
    "digits": {"network": "mlp", "epochs": 20, "batch_size": 64, "learning_rate": 0.05},
    "mnist": {"network": "cnn4", "epochs": 12, "weight_decay": 1e-3},
    "cifar10": {
        "network": "cnn8",
        "epochs": 24,
        "weight_decay": 1e-4,
        "augmentation": "crop:4,flip",
    },
}
"""Shorter than the paper's, which is enough to rank."""


@dataclass(frozen=True)
class Plan:
    """What one cell of the table is made with."""

    configuration: Configuration
    trials: int
    at_once: int
    folds: int | str
    prune: bool
    repeats: int
    journal: Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", choices=SETTINGS)
    parser.add_argument("--noise", nargs="+", default=["symmetric:0.4"])
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--network")
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--folds", default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--repeats", type=int, default=1, help="trainings of each setting on the same labels"
    )
    parser.add_argument("--no-prune", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--threads", type=int, help="of torch, on the CPU")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--seconds", type=float, help="begin no further cell after so long")
    parser.add_argument("--output", type=Path, default=Path("tuning-results.json"))
    parser.add_argument("--table", type=Path, nargs="+", help="print the table of these results")
    parser.add_argument("--markdown", type=Path, help="with --table: write the means here, too")
    options = parser.parse_args()
    if options.table:
        cells = [cell for path in options.table for cell in read(path)]
        print(table(cells))
        if options.markdown is not None:
            options.markdown.write_text(means_table(cells) + "\n", encoding="utf-8")
        return
    if options.dataset is None:
        parser.error("--dataset: expected one of " + ", ".join(SETTINGS))
    if options.threads:
        torch.set_num_threads(options.threads)
    execution = choose_execution(options.device, compile=False if options.no_compile else None)
    dataset = load_dataset(options.dataset, root=options.data_root)
    changes = {"epochs": options.epochs, "network": options.network}
    setting = SETTINGS[options.dataset] | {k: v for k, v in changes.items() if v is not None}
    cells = read(options.output)
    begun = time.monotonic()
    for noise in options.noise:
        for seed in options.seeds:
            if options.seconds is not None and time.monotonic() - begun > options.seconds:
                print("no time left for", noise, seed, flush=True)
                continue
            configuration = Configuration(options.dataset, noise=noise, seed=seed, **setting)
            plan = Plan(
                configuration,
                options.trials,
                options.at_once,
                options.folds if options.folds == "auto" else int(options.folds),
                not options.no_prune,
                options.repeats,
                options.output.with_name(f"search-{configuration.name}.json"),
            )
            cell = find(cells, configuration)
            measure(dataset, plan, execution, cell, lambda: write(options.output, cells))
            print(line(cell), flush=True)
    print(table(cells))


def read(path: Path) -> list[dict[str, Any]]:
    """The cells of a file, or none."""
    return json.loads(path.read_text()) if path.exists() else []


def write(path: Path, cells: Sequence[dict[str, Any]]) -> None:
    write_text(path, json.dumps(cells, indent=1) + "\n")


def find(cells: list[dict[str, Any]], configuration: Configuration) -> dict[str, Any]:
    """The cell of a configuration, begun if there is none."""
    values = configuration.as_values()
    for cell in cells:
        if cell["configuration"] == values:
            return cell
    cell = {"configuration": values, "trials": [], "choice": None, "test": {}, "seconds": {}}
    cell["runs"] = {}
    cells.append(cell)
    return cell


def measure(
    dataset: Dataset,
    plan: Plan,
    execution: Execution,
    cell: dict[str, Any],
    save: Callable[[], None],
) -> None:
    """Search by noisy labels, then train all that was tried and look at the clean test images."""
    cell["versions"] = versions(execution.device)
    if cell["choice"] is None:
        begun = time.perf_counter()

        def note(event: Event | Trial) -> None:
            if isinstance(event, Trial):
                accuracy = "" if event.accuracy is None else f"{event.accuracy:.2f}"
                print(f"  {event.state:9} {accuracy:>6} {event.loss} {event.why}", flush=True)

        found = tune(
            dataset,
            plan.configuration,
            trials=plan.trials,
            at_once=plan.at_once,
            folds=plan.folds,
            execution=execution,
            prune=plan.prune,
            file=plan.journal,
            on_event=note,
        )
        if found.stopped or found.choice is None:
            raise SystemExit("stopped" if found.stopped else "no run was finished")
        cell["trials"] = [trial.as_values() for trial in found.tried]
        cell["choice"] = found.choice.loss
        cell["seconds"]["search"] = round(time.perf_counter() - begun, 1)
        save()
    begun = time.perf_counter()
    runs: dict[str, list[float]] = cell.setdefault("runs", {})
    jobs = [
        # Another seed is another start from the same labels, which are drawn once below.
        Job(replace(plan.configuration, loss=trial["loss"], seed=_seed(plan, repeat)))
        for repeat in range(plan.repeats)
        for trial in cell["trials"]
        if len(runs.get(trial["loss"], [])) <= repeat
    ]
    examples: list[Examples] = []

    def load(configuration: Configuration) -> Examples:
        if not examples:
            examples.append(choose_examples(plan.configuration, dataset))
        return examples[0]

    for event in train_runs(jobs, execution, load=load, at_once=plan.at_once):
        loss = event.job.configuration.loss
        if event.kind in ("finished", "failed"):
            accuracy = event.value.final_accuracy if event.kind == "finished" else 0.0
            runs.setdefault(loss, []).append(round(accuracy, 4))
            cell["test"][loss] = round(fmean(runs[loss]), 4)
            print(f"  clean {accuracy:6.2f} {loss}", flush=True)
            save()
    spent = cell["seconds"].get("full", 0.0) + time.perf_counter() - begun
    cell["seconds"]["full"] = round(spent, 1)
    save()


def _seed(plan: Plan, repeat: int) -> int:
    return plan.configuration.seed + 1000 * repeat


def regret(cell: dict[str, Any]) -> float:
    """Points of clean accuracy between the best of the tried settings and the chosen one."""
    return max(cell["test"].values()) - cell["test"][cell["choice"]]


def line(cell: dict[str, Any]) -> str:
    """A cell in one line."""
    values, test = cell["configuration"], cell["test"]
    best = max(test, key=lambda loss: test[loss])
    states = [trial["state"] for trial in cell["trials"]]
    gone = f"{states.count('pruned')} pruned, {states.count('collapsed')} collapsed"
    return (
        f"{values['data']:8} {values['noise']:15} seed {values['seed']}  regret {regret(cell):5.2f}"
        f"  chosen {test[cell['choice']]:6.2f} {cell['choice']}  best {test[best]:6.2f} {best}"
        f"  ce {test.get('ce', float('nan')):6.2f}"
        f"  ({gone} of {len(states)})"
    )


def table(cells: Sequence[dict[str, Any]]) -> str:
    """Every cell, and for each dataset and noise the means over its seeds."""
    return "\n".join([*(line(cell) for cell in _done(cells)), "", means_table(cells)])


def _done(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["choice"] and len(cell["test"]) == len(cell["trials"])]


def means_table(cells: Sequence[dict[str, Any]]) -> str:
    """For each dataset and noise the means over its seeds."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in _done(cells):
        values = cell["configuration"]
        groups.setdefault((values["data"], values["noise"]), []).append(cell)
    lines = [
        "| data | noise | seeds | CE | chosen | best | regret | regret of the means |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (data, noise), group in groups.items():
        chosen = fmean(cell["test"][cell["choice"]] for cell in group)
        best = fmean(max(cell["test"].values()) for cell in group)
        plain = fmean(cell["test"].get("ce", float("nan")) for cell in group)
        lines.append(
            f"| {data} | {noise} | {len(group)} | {plain:.2f} | {chosen:.2f} | {best:.2f} "
            f"| {best - chosen:.2f} | {regret_of_means(group):.2f} |"
        )
    return "\n".join(lines)


def regret_of_means(cells: Sequence[dict[str, Any]]) -> float:
    """The best mean of a setting that all seeds tried, minus the mean of what was chosen."""
    common = set.intersection(*(set(cell["test"]) for cell in cells))
    means = [fmean(cell["test"][loss] for cell in cells) for loss in common]
    chosen = fmean(cell["test"][cell["choice"]] for cell in cells)
    return max(means) - chosen if means else float("nan")


if __name__ == "__main__":
    main()
