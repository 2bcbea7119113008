"""Cuts that leave groups whole, with as much of every class on each side as they allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["deal_groups", "draw_groups"]


def deal_groups(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """The part that each sample goes to, the same for all of a group.

    Groups of several samples come first, the largest ahead, each to the part that has least of its
    classes; then those that are alone fill up what is missing.

    Args:
        labels: Class indices, `(N)`.
        groups: A number for each sample, `(N)`.
        count: How many parts.
        generator: Decides among equals.

    Example:
        >>> groups = np.array([0, 0, 0, 1, 1, 1, 2, 3])
        >>> deal_groups(np.zeros(8, np.int64), groups, 2, np.random.default_rng(0))
        array([0, 0, 0, 1, 1, 1, 1, 0])
    """
    members = _members(groups)
    if len(members) < count:
        raise ValueError(
            f"groups: expected at least {count} to cut into {count} parts, got {len(members)}"
        )
    sizes = np.bincount(labels)
    part = np.full(len(labels), -1)
    placed = np.zeros((count, len(sizes)))
    several = [group for group in members if len(group) > 1]
    for index in sorted(generator.permutation(len(several)), key=lambda i: -len(several[i])):
        classes, numbers = np.unique(labels[several[index]], return_counts=True)
        before = placed[:, classes]
        # By shares of a class, so that rare ones are spread as evenly as frequent ones.
        uneven = (((before + numbers) ** 2 - before**2) / sizes[classes] ** 2).sum(axis=1)
        chosen = int(np.lexsort((placed.sum(axis=1), uneven))[0])
        part[several[index]] = chosen
        placed[chosen, classes] += numbers
    alone = np.flatnonzero(part < 0)
    alone = alone[np.lexsort((generator.random(len(alone)), labels[alone]))]
    begin = 0
    for label, number in enumerate(np.bincount(labels[alone], minlength=len(sizes)).tolist()):
        more = _fill(placed[:, label], number, placed.sum(axis=1))
        part[alone[begin : begin + number]] = np.repeat(np.arange(count), more)
        placed[:, label] += more
        begin += number
    return part


def draw_groups(
    labels: NDArray[np.int64],
    groups: NDArray[np.int64],
    share: float,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """About a share of every class in whole groups, as positions.

    A sample of each class always stays. Where every group is larger than what is wanted, the
    smallest that can go does.

    Args:
        labels: Class indices, `(N)`.
        groups: A number for each sample, `(N)`.
        share: Between 0 and 1.
        generator: Decides which.

    Example:
        >>> groups = np.repeat(np.arange(10), 3)
        >>> drawn = draw_groups(np.arange(30) % 3, groups, 0.2, np.random.default_rng(0))
        >>> drawn
        array([12, 13, 14, 18, 19, 20])
    """
    members = _members(groups)
    sizes = np.bincount(labels)
    ideal = (share * sizes).round(6)
    held = np.zeros(len(sizes))
    drawn: list[NDArray[np.int64]] = []

    def may_go(classes: NDArray[np.int64], numbers: NDArray[np.int64]) -> bool:
        return bool((held[classes] + numbers < sizes[classes]).all())

    several = [group for group in members if len(group) > 1]
    # Of groups their own share, so that those that are alone can make up for what is uneven.
    alone = np.concatenate([np.zeros(0, np.int64), *(each for each in members if len(each) == 1)])
    singles = np.bincount(labels[alone], minlength=len(sizes))
    of_groups = share * (sizes - singles)
    for index in generator.permutation(len(several)):
        classes, numbers = np.unique(labels[several[index]], return_counts=True)
        missing = of_groups[classes] - held[classes]
        closer = ((missing**2 - (missing - numbers) ** 2) / sizes[classes]).sum() > 0
        if closer and may_go(classes, numbers):
            drawn.append(several[index])
            held[classes] += numbers
    alone = alone[np.lexsort((generator.random(len(alone)), labels[alone]))]
    wanted = np.clip(np.round(ideal - held), 0, np.minimum(singles, sizes - held - 1).clip(0))
    rank = np.arange(len(alone)) - np.repeat(np.cumsum(singles) - singles, singles)
    drawn.append(alone[rank < np.repeat(wanted, singles)])
    if not any(map(len, drawn)):
        drawn = [
            group
            for group in sorted(several, key=len)
            if may_go(*np.unique(labels[group], return_counts=True))
        ][:1]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *drawn]))


def _members(groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The positions of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def _fill(
    there: NDArray[np.float64], number: int, totals: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many go to each part so that all are level; what is left goes to the emptiest ones."""
    level = np.sort(there)
    # How many it takes to raise the lowest of them to each one's level.
    needed = level * np.arange(1, len(level) + 1) - np.cumsum(level)
    raised = int(np.searchsorted(needed, number, side="right"))
    height = (number + level[:raised].sum()) // raised
    more = np.maximum(height - there, 0).astype(np.int64)
    left = number - int(more.sum())
    # Those that the water reached, and of these the ones that have least of all classes.
    reached = there + more <= height
    order = np.lexsort((totals, ~reached))
    more[order[:left]] += 1
    return more
