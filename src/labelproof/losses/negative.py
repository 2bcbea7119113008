r"""Negative learning, $-\log (1 - u_c)$: learns what an image is not, which is right more often."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from labelproof.losses.base import Loss, LossSettings
from labelproof.losses.batch import Outputs, is_probabilities, may_read
from labelproof.losses.numerics import check_clamp, others
from labelproof.ranges import flag, whole


class NegativeLearning(Loss):
    r"""Negative learning, $-\log (1 - u_c)$ with $c$ drawn from the labels that were not given.

    Args:
        samples: Number of labels drawn for each example and step.
        expected: Whether to take the mean over all other labels instead, which has the same
            expectation and no variance.
        clamp: Floor of $1 - u_c$; off by default.
        generator: Source of the draws; by default torch's own for the logits' device. A loss with a
            generator of its own does not compile into one graph.
        **settings: `reduction`, `weight`, `ignore_index`, `check`.

    Example:
        >>> NegativeLearning()(torch.zeros(1, 2), torch.tensor([1]))
        tensor(0.6931)

    Reference:
        Kim et al., "NLNL: Negative Learning for Noisy Labels", ICCV 2019.
    """

    def __init__(
        self,
        samples: int = 1,
        *,
        expected: bool = False,
        clamp: float | None = None,
        generator: torch.Generator | None = None,
        **settings: Unpack[LossSettings],
    ):
        super().__init__(**settings)
        self.samples = whole("samples", samples, 1)
        self.expected = flag("expected", expected)
        self.clamp = check_clamp(clamp)
        self.generator = generator

    def index_values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given integer labels, `(N, ...)`."""
        if self.expected:
            return super().index_values(outputs, target)
        penalties = -log_complements(outputs.log_probabilities, self.clamp)
        drawn = draw_complementary(
            target, outputs.num_classes, samples=self.samples, generator=self.generator
        )
        return penalties.gather(1, drawn).mean(dim=1)

    def label_values(self, outputs: Outputs) -> Tensor:
        """Expected value for every possible label, `(N, C, ...)`."""
        penalties = -log_complements(outputs.log_probabilities, self.clamp)
        return others(penalties, None) / (outputs.num_classes - 1)

    def values(self, outputs: Outputs, target: Tensor) -> Tensor:
        """Value for the given labels; class probabilities need the expected form."""
        if is_probabilities(target) and not self.expected:
            raise ValueError(
                "target: negative learning draws a label other than the one given, so it takes "
                "class indices; for class probabilities set expected=True"
            )
        return super().values(outputs, target)


def draw_complementary(
    target: Tensor, num_classes: int, *, samples: int = 1, generator: torch.Generator | None = None
) -> Tensor:
    """Draw labels uniformly from those other than the target.

    Args:
        target: Class indices `(N, ...)`.
        num_classes: Number of classes, at least 2.
        samples: Labels drawn for each example.
        generator: Source of the draws, on the target's device.

    Returns:
        `(N, samples, ...)`.

    Example:
        >>> draw_complementary(torch.tensor([0, 1]), 2)
        tensor([[1],
                [0]])
    """
    shape = (target.shape[0], samples, *target.shape[1:])
    # Passing a generator, even None, selects an overload without symbolic batch sizes.
    source: dict[str, Any] = {} if generator is None else {"generator": generator}
    offset = torch.randint(1, num_classes, shape, device=target.device, **source)
    return (target.unsqueeze(1) + offset) % num_classes


def log_complements(log_probabilities: Tensor, clamp: float | None = None) -> Tensor:
    r"""Logarithm of $1 - u_i$ for every class on axis 1, exact where $u_i$ rounds to 1.

    For the largest probability $1 - u$ is summed from the other classes, since the subtraction
    would give 0, and the logarithm minus infinity, long before the logits are extreme. The other
    probabilities are at most a half, where `log1p` is exact.
    """
    if log_probabilities.shape[1] < 2:
        raise ValueError("logits: negative learning needs at least 2 classes, got 1")
    largest = log_probabilities.argmax(dim=1, keepdim=True)
    rest = log_probabilities.scatter(1, largest, -math.inf)
    # The largest is -inf in `rest`, so its exp is a harmless 0 and no NaN reaches the gradient.
    result = torch.log1p(-rest.exp()).scatter(1, largest, _log_sum(rest))
    return result if clamp is None else result.clamp_min(math.log(clamp))


def _log_sum(values: Tensor) -> Tensor:
    """Logarithm of the sum of exponentials on axis 1, with no gradient where all are -inf."""
    total = torch.logsumexp(values, 1, keepdim=True)
    if may_read(total) and math.isfinite(total.detach().sum()):
        return total
    # There torch's gradient is exp(-inf + inf), a NaN that a weight of 0 does not remove.
    nothing = total == -math.inf
    finite = torch.logsumexp(torch.where(nothing, 0, values), 1, keepdim=True)
    return torch.where(nothing, -math.inf, finite)
