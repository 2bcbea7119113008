"""What is said about a run before, after, and when it is stopped."""

from __future__ import annotations

import shlex
from pathlib import Path

from labelproof.data.dataset import Dataset
from labelproof.data.notices import count
from labelproof.training.checkpoint import load_checkpoint
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution, resolve_precision
from labelproof.training.record import RunRecord
from labelproof.training.run_folder import RunFolder

__all__ = ["already_finished", "preview", "stopped", "summary"]


def preview(
    configuration: Configuration,
    examples: Examples,
    execution: Execution,
    folder: Path,
    *,
    fresh: bool,
) -> str:
    """What a run would be, as comments behind its settings."""
    dataset, device = examples.dataset, execution.device
    precision = resolve_precision(configuration.precision, device)
    compiled = "compiled" if execution.compile else "not compiled"
    tested = count(len(dataset.test), _what(dataset)) if "test" in dataset.splits else "nothing"
    size = "x".join(str(side) for side in dataset.input_shape)
    each = _steps(len(examples.used), configuration.batch_size)
    lines = [
        f"device: {device}, {precision}, {compiled}",
        f"examples: {len(examples.used):,} to learn from, tested on {tested}, "
        f"{count(dataset.num_classes, 'class', 'classes')}, {size}",
        f"noise: {_noise(examples.noise_rate, clean=dataset.clean)}",
        f"steps: {each:,} in each of {count(configuration.epochs, 'epoch')}, "
        f"{each * configuration.epochs:,} in all",
        f"output: {folder} ({'new' if fresh else _standing(configuration, folder)})",
    ]
    return "".join(f"# {line}\n" for line in lines)


def summary(record: RunRecord, examples: Examples, folder: Path) -> str:
    """What a run came to, in a few lines."""
    lines = []
    what = _what(examples.dataset)
    if "test_accuracy" in record.curve:
        tested = count(len(examples.dataset.test), f"test {what}")
        lines.append(f"Accuracy after the last epoch: {record.final_accuracy:.2f}% of {tested}")
    else:
        lines.append(f"Accuracy: the dataset has no test {what}s to measure it on")
    lines.append(f"Noise: {_noise(record.noise_rate, clean=examples.clean is not None)}")
    if "clean_fitted" in record.curve:
        right = f"{100 * record.curve['clean_fitted'][-1]:.1f}% of the right labels are fitted"
        wrong = (
            f", {100 * record.curve['wrong_fitted'][-1]:.1f}% of the wrong ones; for "
            f"{100 * record.curve['wrong_corrected'][-1]:.1f}% of those the true class is predicted"
        )
        lines.append(f"Memorised: {right}{wrong if record.noise_rate else ''}")
    lines.append(f"Run: {folder}")
    place = shlex.quote(str(folder))
    new = "NEW.csv" if examples.dataset.tabular else "NEW-IMAGES"
    tested = "test_accuracy" in record.curve
    lines.append(f"Next: labelproof {f'evaluate {place}' if tested else f'predict {place} {new}'}")
    return "\n".join(lines)


def already_finished(folder: Path, record: RunRecord) -> str:
    """That there is nothing to do, and what came out when it was done."""
    accuracy = record.curve.get("test_accuracy")
    came = f" with an accuracy of {accuracy[-1]:.2f}%" if accuracy else ""
    return f"{folder} holds this run, finished{came}; --fresh trains it again"


def stopped(folder: Path, stood: tuple[int, int] | None, *, epochs: int, fresh: bool) -> str:
    """Where a run stands that was stopped, and how to go on.

    Args:
        folder: The run's.
        stood: The epochs that are done and the steps of the next, or nothing.
        epochs: Of the whole run.
        fresh: Whether it was started anew.
    """
    if stood is None:
        return "Stopped before the first step; nothing is lost"
    command = "the same command without --fresh" if fresh else "the same command"
    return (
        f"Stopped after epoch {stood[0]} of {epochs}, step {stood[1]}; saved in {folder}; "
        f"{command} goes on from there"
    )


def _noise(rate: float, *, clean: bool) -> str:
    if clean:
        return f"{100 * rate:.1f}% of the training labels are wrong"
    return f"{100 * rate:.1f}% of the training labels were changed; how many were wrong is unknown"


def _what(dataset: Dataset) -> str:
    return "row" if dataset.tabular else "image"


def _steps(examples: int, batch_size: int) -> int:
    # A batch of a single example is left out.
    return examples // batch_size + (examples % batch_size > 1)


def _standing(configuration: Configuration, folder: Path) -> str:
    if RunFolder(folder).record(configuration) is not None:
        return "finished"
    checkpoint = load_checkpoint(folder / "checkpoint", on_problem=lambda _: None)
    if checkpoint is None:
        return "new"
    return f"goes on after epoch {checkpoint.values['epoch']}, step {checkpoint.values['step']}"
