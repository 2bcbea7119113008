"""Cuts that leave groups whole, with as much of every class on each side as they allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labelproof.data.groups import members_of

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
    members = members_of(groups)
    if len(members) < count:
        raise ValueError(
            f"groups: expected at least {count} to cut into {count} parts, got {len(members)}"
        )
    sizes = np.bincount(labels)
    part = np.full(len(labels), -1)
    several = [group for group in members if len(group) > 1]
    # Numbers of Python's, of which a few are quicker than arrays: there may be a million groups.
    counted = _count_classes(labels, several)
    there = [[0] * len(sizes) for _ in range(count)]
    totals = [0] * count
    for index in sorted(generator.permutation(len(several)), key=lambda i: -len(several[i])):
        numbers = counted[index]

        def unevenness(number: int, numbers: dict[int, int] = numbers) -> tuple[float, int]:
            # By shares of a class, so that rare ones are spread as evenly as frequent ones.
            return (
                sum(
                    more * (2 * there[number][label] + more) / int(sizes[label]) ** 2
                    for label, more in numbers.items()
                ),
                totals[number],
            )

        chosen = min(range(count), key=unevenness)
        part[several[index]] = chosen
        totals[chosen] += len(several[index])
        for label, more in numbers.items():
            there[chosen][label] += more
    placed = np.array(there, dtype=np.float64)
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
    members = members_of(groups)
    sizes = np.bincount(labels)
    several = [group for group in members if len(group) > 1]
    alone = np.concatenate([np.zeros(0, np.int64), *(each for each in members if len(each) == 1)])
    singles = np.bincount(labels[alone], minlength=len(sizes))
    # Of groups their own share, so that those that are alone can make up for what is uneven.
    of_groups, all_of = (share * (sizes - singles)).tolist(), sizes.tolist()
    counted = _count_classes(labels, several)
    held = [0] * len(sizes)
    drawn: list[NDArray[np.int64]] = []

    def may_go(numbers: dict[int, int]) -> bool:
        return all(held[label] + more < all_of[label] for label, more in numbers.items())

    for index in generator.permutation(len(several)):
        numbers = counted[index]
        closer = sum(
            more * (2 * (of_groups[label] - held[label]) - more) / all_of[label]
            for label, more in numbers.items()
        )
        if closer > 0 and may_go(numbers):
            drawn.append(several[index])
            for label, more in numbers.items():
                held[label] += more
    alone = alone[np.lexsort((generator.random(len(alone)), labels[alone]))]
    wanted = _fill_up(sizes, np.array(held), singles, share, generator)
    rank = np.arange(len(alone)) - np.repeat(np.cumsum(singles) - singles, singles)
    drawn.append(alone[rank < np.repeat(wanted, singles)])
    if not any(map(len, drawn)):
        smallest = sorted(range(len(several)), key=lambda index: len(several[index]))
        drawn = [several[index] for index in smallest if may_go(counted[index])][:1]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *drawn]))


def _fill_up(
    sizes: NDArray[np.int64],
    held: NDArray[np.int64],
    singles: NDArray[np.int64],
    share: float,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """How many of each class are drawn one by one, so that there are as many as were asked for."""
    missing = (share * sizes).round(6) - held
    most = np.minimum(singles, np.maximum(sizes - held - 1, 0))
    wanted = np.clip(np.floor(missing), 0, most).astype(np.int64)
    left = round(share * int(sizes.sum())) - int(held.sum()) - int(wanted.sum())
    # The largest remainders first, and chance among equal ones, as where nothing is grouped.
    order = np.lexsort((generator.random(len(sizes)), wanted - missing))
    order = order[(wanted < most)[order]]
    wanted[order[: max(left, 0)]] += 1
    return wanted


def _count_classes(
    labels: NDArray[np.int64], groups: list[NDArray[np.int64]]
) -> list[dict[int, int]]:
    """How many of each class are in each group."""
    counted: list[dict[int, int]] = []
    for group in groups:
        numbers: dict[int, int] = {}
        for label in labels[group].tolist():
            numbers[label] = numbers.get(label, 0) + 1
        counted.append(numbers)
    return counted


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
