"""A run's tensors as a checkpoint has them, and whether one fits the run that goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from labelproof.training.checkpoint import Checkpoint

__all__ = ["all_tensors", "can_draw_on", "make_checkpoint", "refuse_misfit"]


def make_checkpoint(
    tensors: Mapping[str, Tensor], values: dict[str, Any], *, kept: str
) -> Checkpoint:
    """A checkpoint of everything that training changes.

    Args:
        tensors: By name, on the CPU.
        values: What else there is to remember.
        kept: What the names of the weights begin with that someone will predict with.
    """
    weights, state = {}, {}
    for name, tensor in tensors.items():
        if name.startswith(kept):
            weights[name.removeprefix(kept)] = tensor
        else:
            state[name] = tensor
    return Checkpoint(weights, state, values)


def all_tensors(checkpoint: Checkpoint, *, kept: str) -> dict[str, Tensor]:
    """The tensors that a checkpoint was made of, by the names they had."""
    weights = {f"{kept}{name}": tensor for name, tensor in checkpoint.weights.items()}
    # An earlier version also kept what a loss is made with, which follows from the configuration.
    made_with = ("._weight", "._temperature", ".class_weight", ".vector")
    state = {
        name: tensor
        for name, tensor in checkpoint.state.items()
        if not (name.startswith("algorithm.loss.") and name.endswith(made_with))
    }
    return state | weights


def refuse_misfit(found: Mapping[str, Tensor], mine: Mapping[str, Tensor], network: str) -> None:
    """Refuse tensors of a checkpoint that are not those of the run, by name and shape.

    Raises:
        ValueError: One is missing, too many, or of another shape.
    """
    for name in [*mine, *found]:
        there, here = (each[name].shape if name in each else None for each in (found, mine))
        if there != here:
            raise ValueError(
                f"checkpoint: {name} does not fit {network}, which has changed since; choose "
                "another folder, or start anew with --fresh"
            )


def can_draw_on(
    found: Mapping[str, Tensor], mine: Mapping[str, Tensor], *, between_epochs: bool
) -> bool:
    """Whether random numbers can go on where a checkpoint stood.

    Args:
        found: The states of generators, as the checkpoint has them.
        mine: Those of the run.
        between_epochs: Whether nothing is lost otherwise: an epoch starts from seeds of its own.

    Raises:
        ValueError: They are of another kind of device, and would be needed.
    """
    same = all(name in found and found[name].shape == mine[name].shape for name in mine)
    if not same and not between_epochs:
        raise ValueError(
            "checkpoint: was saved in the middle of an epoch on another kind of device, whose "
            "random numbers are not to be had here; go on there until the epoch ends, or start "
            "anew with --fresh"
        )
    return same
