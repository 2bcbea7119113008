"""When all predictions become one class: see it early, go back to a weaker penalty, and say so."""

from __future__ import annotations

import warnings
from dataclasses import replace

from labelproof.fitting.recipe import complete_loss, is_bare
from labelproof.integrations.estimator_examples import spread_of_labels
from labelproof.integrations.estimator_fitting import Trained, Weights, train_network
from labelproof.losses import Loss, SparseRegularized, format_loss
from labelproof.training.batches import ResidentImages, ResidentRows
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution
from labelproof.tuning.collapse import back_off, collapse, patience_for

__all__ = ["CollapseWarning", "train_backing_off"]


class CollapseWarning(UserWarning):
    """A network came to predict one class for everything."""


def train_backing_off(
    loss: str | Loss,
    setting: Configuration,
    examples: Examples,
    execution: Execution,
    *,
    start: Weights | None,
    patience: int | None,
    verbose: bool,
) -> tuple[Trained, str | Loss]:
    """Train; and where the default weight of the penalty proves too strong, with half of it.

    Args:
        loss: As the user gave it.
        setting: All but the loss.
        examples: What to learn from.
        execution: How.
        start: Weights to go on from.
        patience: As for `train_network`.
        verbose: Likewise.

    Returns:
        What came of it, and the loss that was minimised, as text where it has one.

    Warns:
        CollapseWarning: All predictions became one class.
    """
    make_inputs = ResidentRows if examples.dataset.tabular else ResidentImages
    inputs = make_inputs(examples.dataset, execution.device)
    classes = spread_of_labels(examples)
    steps = -(-len(examples.used) // setting.batch_size)
    given_time = patience_for(epochs=setting.epochs, steps=steps)
    first, itself = _written(loss, setting.epochs)
    chosen, bare = replace(setting, loss=first), isinstance(loss, str) and is_bare(loss)
    while True:
        weaker = back_off(chosen.loss) if bare else None
        trained = train_network(
            chosen,
            examples,
            inputs,
            execution,
            loss=itself,
            start=start,
            patience=patience,
            collapse=lambda curve: collapse(curve, classes=classes, patience=given_time),
            stop_at_collapse=weaker is not None,
            verbose=verbose,
        )
        if trained.collapsed is None or weaker is None:
            break
        chosen = replace(chosen, loss=weaker)
    used = chosen.loss if itself is None else itself
    if trained.collapsed is not None:
        _warn(f"the network collapsed: {trained.collapsed}; what often helps: {_helps(used)}")
    elif chosen.loss != replace(setting, loss=first).loss:
        _warn(
            f"with loss={first!r} the network collapsed to a few classes, so {used} was taken; "
            "to have it so at once, write that loss"
        )
    return trained, used


def _written(loss: str | Loss, epochs: int) -> tuple[str, Loss | None]:
    """A text for the configuration; and the loss itself, where no text can say it."""
    if isinstance(loss, str):
        return complete_loss(loss, epochs=epochs), None
    if loss.reduction != "mean":
        raise ValueError(f"loss: expected the reduction 'mean', got {loss.reduction!r}")
    parts = [part for part in loss.modules() if isinstance(part, Loss)]
    if any(part.class_weight is not None or part.ignore_index != -100 for part in parts):
        return Configuration.loss, loss  # a text would be without them
    try:
        return format_loss(loss), None
    except ValueError:  # such as one with a schedule of the user's
        return Configuration.loss, loss


def _helps(loss: str | Loss) -> str:
    sparse = "+sr" in loss if isinstance(loss, str) else isinstance(loss, SparseRegularized)
    stronger = "a smaller lambda0, a rho nearer to 1, " if sparse else ""
    return f"{stronger}a lower learning_rate, or another loss than {loss}"


def _warn(message: str) -> None:
    # Three levels up is the line that called fit.
    warnings.warn(message, CollapseWarning, stacklevel=4)
