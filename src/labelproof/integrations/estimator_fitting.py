"""The engine driven in memory: one network from examples to weights, and whether it collapsed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from labelproof.losses import Loss
from labelproof.models.text import make_network
from labelproof.training.batches import DeviceInputs
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples
from labelproof.training.execution import Execution
from labelproof.training.trainer import Trainer

__all__ = ["Trained", "Weights", "predict_logits", "train_network"]

Weights = dict[str, NDArray[np.generic]]
"""A network's parameters and statistics by name."""


@dataclass
class Trained:
    """What training came to.

    Attributes:
        weights: Of the best epoch where there was something to validate on, else of the last.
        losses: Mean loss of each epoch.
        scores: Share of the held-out labels that is predicted, epoch by epoch, if any are held out.
        collapsed: Why the network is taken for collapsed, or `None` for one that learns.
    """

    weights: Weights = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    collapsed: str | None = None


def train_network(
    configuration: Configuration,
    examples: Examples,
    inputs: DeviceInputs,
    execution: Execution,
    *,
    loss: Loss | None = None,
    start: Mapping[str, NDArray[np.generic]] | None = None,
    patience: int | None = None,
    collapse: Callable[[Mapping[str, Sequence[float]]], str | None],
    stop_at_collapse: bool = False,
    verbose: bool = False,
) -> Trained:
    """Train one network.

    Args:
        configuration: What to train.
        examples: What to learn from; what is held out is looked at after every epoch.
        inputs: Them, on the device.
        execution: How.
        loss: Takes the place of the configuration's, where it cannot be written as text.
        start: Weights to go on from.
        patience: Epochs without a better score on what is held out, after which to stop; the best
            weights are kept. `None` to train to the end and keep the last.
        collapse: Says from the metrics, epoch by epoch, why a network is taken for collapsed.
        stop_at_collapse: Whether to stop then.
        verbose: Print a line for every epoch.
    """
    # A copy: the user's own stays as it is, epoch and device.
    run = Trainer(configuration, examples, inputs, execution, loss=copy.deepcopy(loss))
    if start is not None:
        _put_weights(run, start)
    run.prepare()
    trained, best, best_epoch = Trained(), -1.0, 0
    curve: dict[str, list[float]] = {"validation_accuracy": [], "predicted_classes": []}
    while not run.finished:
        run.begin()
        while not run.advance():
            pass
        metrics = run.collect(run.end())
        for name, values in curve.items():
            values.append(metrics[name])
        trained.losses.append(metrics["train_loss"])
        score = metrics["validation_accuracy"] / 100
        if verbose:
            said = f", validation accuracy {score:.4f}" if patience is not None else ""
            print(f"epoch {run.epoch}, loss {trained.losses[-1]:.6f}{said}")
        trained.collapsed = collapse(curve)
        if trained.collapsed is not None and stop_at_collapse:
            break
        if patience is not None:
            trained.scores.append(score)
            if score > best:
                best, best_epoch, trained.weights = score, run.epoch, _take_weights(run)
            elif run.epoch - best_epoch >= patience:
                break
    run.refuse_unsound()
    if patience is None:
        trained.weights = _take_weights(run)
    return trained


def predict_logits(
    network: str,
    weights: Mapping[str, NDArray[np.generic]],
    inputs: Iterable[torch.Tensor],
    *,
    num_classes: int,
    input_shape: Sequence[int],
    device: torch.device,
    dtype: torch.dtype,
) -> NDArray[np.float64]:
    """The logits of prepared inputs, batch by batch, `(N, C)`.

    Args:
        network: As text.
        weights: Of it.
        inputs: Batches.
        num_classes: Number of classes.
        input_shape: Shape of one input.
        device: Where to compute.
        dtype: In what.
    """
    # A generator of its own: the first weights are overwritten, and the program's draws stay its.
    model = make_network(
        network,
        num_classes=num_classes,
        input_shape=input_shape,
        generator=torch.Generator(),
        pretrained=False,
    )
    model.load_state_dict(
        {name: torch.from_numpy(array.copy()) for name, array in weights.items()}, strict=False
    )
    model = model.to(device, dtype).eval()
    with torch.no_grad():
        found = [model(batch.to(device, dtype)).double().cpu().numpy() for batch in inputs]
    return np.concatenate(found) if found else np.zeros((0, num_classes))


def _put_weights(run: Trainer, weights: Mapping[str, NDArray[np.generic]]) -> None:
    for network in [*run.networks, *([] if run.average is None else [run.average])]:
        state = network.state_dict()
        with torch.no_grad():
            for name, array in weights.items():
                state[name].copy_(torch.from_numpy(array.copy()))


def _take_weights(run: Trainer) -> Weights:
    run.synchronize()
    state = run.evaluated.state_dict()
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in state.items()}
