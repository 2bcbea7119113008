"""The multi-layer perceptron, for inputs of any shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from labelproof.models.network import Network, global_state_kept, initialize, sizes
from labelproof.ranges import flag, whole


class MLP(Network):
    """Linear layers with ReLU between them, over flattened inputs.

    Args:
        num_classes: Number of classes.
        input_shape: Shape of one input: `(F,)` for a table's rows, `(3, 32, 32)` for images.
        hidden: Width of each hidden layer; none at all makes a linear classifier.
        batch_norm: Whether to put batch normalisation before each ReLU.
        generator: Source of the initial weights.

    Example:
        >>> network = MLP(3, (20,), hidden=(64, 16))
        >>> network(torch.zeros(5, 20)).shape, network.features(torch.zeros(5, 20)).shape
        (torch.Size([5, 3]), torch.Size([5, 16]))
    """

    def __init__(
        self,
        num_classes: int,
        input_shape: Sequence[int],
        *,
        hidden: Sequence[int] = (256, 256),
        batch_norm: bool = False,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        num_classes = whole("num_classes", num_classes, 1)
        batch_norm = flag("batch_norm", batch_norm)
        if isinstance(hidden, str) or not isinstance(hidden, Sequence):
            raise TypeError(f"hidden: expected widths such as (256, 256), got {hidden!r}")
        widths = [math.prod(sizes("input_shape", input_shape))]
        widths += [whole("hidden", width, 1) for width in hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        with global_state_kept():
            for inputs, outputs in pairwise(widths):
                layers.append(nn.Linear(inputs, outputs))
                if batch_norm:
                    layers.append(nn.BatchNorm1d(outputs))
                layers.append(nn.ReLU())
            self.body = nn.Sequential(*layers)
            self.head = nn.Linear(widths[-1], num_classes)
        initialize(self, generator)
