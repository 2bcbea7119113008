"""What the theory is asked about: outputs, vectors and transition matrices, checked once."""

from __future__ import annotations

import torch
from torch import Tensor

from labelproof.losses import Loss, Outputs
from labelproof.losses.batch import working_precision

__all__ = [
    "admit_classes",
    "admit_labels",
    "admit_tensor",
    "admit_transition",
    "label_values",
    "vector_values",
]


def vector_values(loss: Loss, vector: Tensor) -> Tensor:
    """Loss of one output for every label, `(k)`."""
    admit_tensor("vector", vector)
    if vector.ndim != 1:
        raise ValueError(f"vector: expected shape (k), got {tuple(vector.shape)}")
    return label_values(loss, vector, name="vector")


def label_values(loss: Loss, outputs: Tensor, *, name: str = "outputs") -> Tensor:
    """Loss of each output for every label, in the outputs' shape."""
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss: expected a loss of labelproof, got {type(loss).__name__}; "
            "labelproof.as_loss takes in any other module"
        )
    admit_tensor(name, outputs)
    outputs = working_precision(outputs)
    valid = outputs.ndim > 0 and outputs.shape[-1] > 1 and outputs.numel() > 0
    if not valid or not _are_distributions(outputs):
        raise ValueError(
            f"{name}: expected probabilities of 2 or more classes on the last axis, that add up to "
            f"1, got shape {tuple(outputs.shape)}; torch.softmax makes them from logits"
        )
    flat = outputs.reshape(-1, outputs.shape[-1])
    values = loss.label_values(Outputs(flat.log()))
    if bool(values.isnan().any()):
        place = int(values.isnan().any(dim=1).nonzero()[0])
        raise ValueError(
            f"loss: {type(loss).__name__} has no value (NaN) at the output {flat[place].tolist()}"
        )
    return values.reshape(outputs.shape)


def admit_tensor(name: str, values: object) -> None:
    """Refuse what is not a tensor of floating-point numbers, such as an array or a list."""
    if not isinstance(values, Tensor):
        raise TypeError(
            f"{name}: expected a tensor, got {type(values).__name__}; torch.as_tensor makes one"
        )
    if not values.is_floating_point():
        raise TypeError(f"{name}: expected a floating-point tensor, got {values.dtype}")


def admit_labels(
    name: str, labels: Tensor, *, shape: tuple[int, ...], num_classes: int, rows: str
) -> Tensor:
    """Refuse what is not one class index for each example.

    Args:
        name: The argument's name, for the message.
        labels: What the caller gave.
        shape: The shape that it must have.
        num_classes: How many classes there are.
        rows: What the shape follows from, for the message.
    """
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"{name}: expected a tensor, got {type(labels).__name__}; torch.as_tensor makes one"
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"{name}: expected integer class indices, got {labels.dtype}")
    if tuple(labels.shape) != shape:
        raise ValueError(f"{name}: expected shape (N) for {rows}, got {tuple(labels.shape)}")
    labels = labels.long()
    bad = (labels < 0) | (labels >= num_classes)
    if bool(bad.any()):
        place = int(bad.nonzero()[0])
        raise ValueError(
            f"{name}: expected class indices from 0 to {num_classes - 1}, got "
            f"{int(labels[place])} at index {place}"
        )
    return labels


def admit_transition(transition: Tensor, *, num_classes: int | None = None) -> Tensor:
    """Refuse what is not a square matrix of chances."""
    transition = torch.as_tensor(transition)  # labelproof.noise makes its matrices with numpy
    size = num_classes or len(transition)
    if tuple(transition.shape) != (size, size) or not _are_distributions(transition):
        raise ValueError(
            f"transition: expected shape ({size}, {size}) with rows of probabilities, each adding "
            f"up to 1, got shape {tuple(transition.shape)}"
        )
    return transition


def admit_classes(num_classes: int) -> int:
    """Refuse fewer than two classes."""
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    return num_classes


def _are_distributions(rows: Tensor) -> bool:
    # A thousandth admits half precision and rounded tables, and still refuses logits.
    return bool((rows >= 0).all()) and bool(((rows.sum(dim=-1) - 1).abs() < 1e-3).all())
