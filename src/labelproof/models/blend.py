"""A weighted mean of classifiers fitted to a table, as one module of plain tensors.

`fit` on a table blends linear models, kernels and forests. As tensors they are saved without
pickle, loaded without running code, and exported like any other network. Matrices are in float64,
since ridge regression on a kernel has large coefficients of both signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from typing_extensions import override

BLEND = "blend"
"""The network's name in a run whose model is a blend."""

LEAST = 1e-4
"""Lower bound of predicted probabilities, before they are normalised."""
FARTHEST = 5.0
"""Features are clipped to this many standard deviations around their mean."""
_STEPS = 10
"""Steps of expectation maximisation in `take_back`: more change little."""
_BUFFERS = ("mean", "std", "weights", "temperatures", "mixing", "prior", "temperature")


class _WithBuffers(nn.Module):
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Tensor: ...  # a registered buffer


class Blend(_WithBuffers):
    """Predicts the weighted mean of several classifiers.

    Args:
        tensors: `mean` and `std` of each feature, `weights` and `temperatures` of all variants,
            `mixing`, `prior` and `temperature` of their mean, and those of each member under names
            such as `0.kernel.points`: index, kind and name. With texts, `ids` are the places of
            features that hold the ids of terms, which have no mean.

    Raises:
        ValueError: The tensors are not those of a blend.

    Example:
        >>> tensors = {name: torch.ones(2).double() for name in ("mean", "std", "prior")}
        >>> tensors |= {name: torch.ones(1).double() for name in ("weights", "temperatures")}
        >>> tensors |= {"temperature": torch.tensor(1.0).double(), "mixing": torch.eye(2).double()}
        >>> tensors |= {"0.linear.slopes": torch.eye(2).double()[None]}
        >>> tensors |= {"0.linear.intercepts": torch.zeros(1, 1, 2).double()}
        >>> Blend(tensors)(torch.tensor([[3.0, 1.0]])).softmax(dim=1).round(decimals=3)
        tensor([[0.8810, 0.1190]])
    """

    def __init__(self, tensors: Mapping[str, Tensor]):
        super().__init__()
        members: dict[tuple[int, str], dict[str, Tensor]] = {}
        try:
            for name, tensor in tensors.items():
                if "." in name:
                    place, kind, part = name.split(".", 2)
                    members.setdefault((int(place), kind), {})[part] = tensor
            for name in _BUFFERS:
                self.register_buffer(name, tensors[name].double())
            self.register_buffer("ids", tensors.get("ids", torch.zeros(0)).long())
            self.features = len(self.mean) + len(self.ids)
            rest = torch.ones(self.features, dtype=torch.bool)
            rest[self.ids] = False
            self.register_buffer("rest", rest.nonzero()[:, 0])
            classes = len(self.prior)
            self.mixed = not torch.equal(self.mixing, torch.eye(classes, dtype=torch.float64))
            self.members = nn.ModuleList(
                _KINDS[kind](parts)
                for (_, kind), parts in sorted(members.items(), key=lambda member: member[0])
            )
            for member in self.members:
                if isinstance(member, _Forest) and not member.fits(len(self.mean)):
                    raise ValueError("a node of a tree leads nowhere")
                if isinstance(member, _Words) and member.slopes.shape[1] != len(member.rarity):
                    raise ValueError("terms without a slope")
            # Any other mismatch raises here, and not on the first rows.
            output = self(torch.zeros(1, self.features))
            if output.shape != (1, classes) or not output.isfinite().all():
                raise ValueError(f"it gives {output.tolist()}")
        except (KeyError, IndexError, TypeError, RuntimeError, ValueError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"the tensors are not those of a blend ({first})") from None

    @override
    def forward(self, rows: Tensor) -> Tensor:
        """Log-probabilities of the true classes, `(N, C)`, from unscaled rows `(N, F)`."""
        terms = rows[:, self.ids].long()
        rows = rows[:, self.rest] if len(self.ids) else rows
        wide = rows.double()
        standard = ((wide - self.mean) / self.std).clamp(-FARTHEST, FARTHEST)
        tables = torch.cat(
            [
                _as_probabilities(member(terms if isinstance(member, _Words) else rows, standard))
                for member in self.members
            ]
        )
        calibrated = _calibrate(tables, self.temperatures[:, None, None])
        mean = (self.weights[:, None, None] * calibrated).sum(dim=0)
        if self.mixed:
            mean = take_back(mean, self.mixing)
        return _calibrate(mean / self.prior, self.temperature).log().float()


def take_back(predicted: Tensor, mixing: Tensor) -> Tensor:
    r"""The probabilities of true classes, `(N, C)`, from those of given labels.

    A row of `mixing` has the label probabilities of a true class. By expectation maximisation,
    since \(p\,T^{-1}\) may be negative.

    >>> mixing = torch.tensor([[0.7, 0.3], [0.0, 1.0]])
    >>> take_back(torch.tensor([[0.56, 0.44]]), mixing).round(decimals=2)
    tensor([[0.8000, 0.2000]])
    """
    true = predicted
    for _ in range(_STEPS):
        true = true * ((predicted / (true @ mixing).clamp(min=1e-12)) @ mixing.T)
    return true


def _as_probabilities(table: Tensor) -> Tensor:
    kept = table.clamp(min=LEAST)
    return kept / kept.sum(dim=-1, keepdim=True)


def _calibrate(table: Tensor, temperature: Tensor) -> Tensor:
    return _as_probabilities((table.log() / temperature).softmax(dim=-1))


class _Member(_WithBuffers):
    """A classifier in one or more variants; returns scores `(V, N, C)`, clamped afterwards."""

    names: tuple[str, ...]

    def __init__(self, tensors: Mapping[str, Tensor]):
        super().__init__()
        for name in self.names:
            self.register_buffer(name, tensors[name])


class _Linear(_Member):
    """Logistic regression: `slopes`, `(V, F, C)`, and `intercepts`, `(V, 1, C)`."""

    names = ("slopes", "intercepts")

    @override
    def forward(self, rows: Tensor, standard: Tensor) -> Tensor:
        return (standard @ self.slopes + self.intercepts).softmax(dim=-1)


class _Kernel(_Member):
    """Regression on Gaussian kernels of a `sharpness` around `points`, and on the features."""

    names = ("points", "sharpness", "coefficients")

    @override
    def forward(self, rows: Tensor, standard: Tensor) -> Tensor:
        scaled = standard / standard.shape[1] ** 0.5
        square = (scaled**2).sum(dim=1, keepdim=True) + (self.points**2).sum(dim=1)
        near = (-self.sharpness * (square - 2 * scaled @ self.points.T).clamp(min=0)).exp()
        features = torch.cat([near, scaled, torch.ones_like(scaled[:, :1])], dim=1)
        return features @ self.coefficients


class _Words(_Member):
    """Regression on the terms of texts, `(N, L)` ids, and on the features `beside` them."""

    names = ("rarity", "slopes", "beside", "features", "mean")

    @override
    def forward(self, rows: Tensor, standard: Tensor) -> Tensor:
        known = torch.where((rows > 0) & (rows < len(self.rarity)), rows, 0)
        weight = self.rarity[known]
        weight = weight / weight.norm(dim=1, keepdim=True).clamp(min=1e-9)
        texts = [(weight[:, None] @ slopes[known].double())[:, 0] for slopes in self.slopes]
        ready = standard[:, self.beside] / max(len(self.beside), 1) ** 0.5
        return torch.stack(texts) + ready @ self.features + self.mean


class _Forest(_Member):
    """The mean of each variant's trees, whose nodes are in one table.

    Rows whose `feature` is at most `threshold` go to the node `left`, others to `right`; a leaf
    leads to itself. `roots`, `(V, T)`, are the first nodes of the trees, and `value` has the share
    of each class in a leaf.
    """

    names = ("feature", "threshold", "left", "right", "roots", "value")

    def __init__(self, tensors: Mapping[str, Tensor]):
        super().__init__(tensors)
        self.depth, nodes = 0, self.roots.long().unique()
        # Both children come after their parent, or this would not end; see `fits`.
        while len(inner := nodes[torch.minimum(self.left[nodes], self.right[nodes]) > nodes]):
            self.depth += 1
            nodes = torch.cat([self.left[inner], self.right[inner]]).long().unique()

    def fits(self, features: int) -> bool:
        """Whether every node tests an existing feature and leads to later nodes or to itself."""
        place = torch.arange(len(self.value))
        inside = [
            (child >= place) & (child < len(place)) & ((child > place) == (self.left > place))
            for child in (self.left, self.right)
        ]
        seen = (self.feature >= 0) & (self.feature < features)
        return bool((inside[0] & inside[1] & seen).all())

    @override
    def forward(self, rows: Tensor, standard: Tensor) -> Tensor:
        examples, features = rows.shape
        # Gathers from one dimension at 32-bit indices take a third of the time of others.
        values = rows.float().flatten()
        first = features * torch.arange(examples, dtype=torch.int32, device=rows.device)
        first = first[:, None].expand(-1, self.roots.numel()).flatten()
        node = self.roots.int().flatten().expand(examples, -1).flatten()
        children = torch.stack([self.right, self.left], dim=1).flatten().int()
        for _ in range(self.depth):
            at = values.index_select(0, first + self.feature.index_select(0, node))
            node = children.index_select(0, 2 * node + (at <= self.threshold.index_select(0, node)))
        found = self.value.index_select(0, node).double().view(examples, *self.roots.shape, -1)
        return found.mean(dim=2).movedim(1, 0)


_KINDS: dict[str, type[_Member]] = {
    "linear": _Linear,
    "kernel": _Kernel,
    "forest": _Forest,
    "words": _Words,
}
