"""What every network of this package is: a body that makes features and a head that reads them."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["Network"]


class Network(nn.Module):
    """A classifier in two parts; subclasses make the parts.

    Attributes:
        body: From inputs to features, `(N, D)`.
        head: The last linear layer, from features to logits.

    Example:
        >>> import torch
        >>> network = Network()
        >>> network.body, network.head = nn.Sequential(nn.Flatten()), nn.Linear(12, 10)
        >>> network.features(torch.zeros(2, 3, 4)).shape, network(torch.zeros(2, 3, 4)).shape
        (torch.Size([2, 12]), torch.Size([2, 10]))
    """

    body: nn.Sequential
    head: nn.Linear

    def features(self, inputs: Tensor) -> Tensor:
        """What the head sees, `(N, D)`."""
        return self.body(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, `(N, num_classes)`."""
        return self.head(self.features(inputs))
