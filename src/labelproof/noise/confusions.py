"""Which classes are taken for which other: asymmetric noise, dataset by dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["CONFUSIONS", "IN_TURN", "REFERENCE_CONFUSIONS", "SUPER_CLASSES"]

SUPER_CLASSES: tuple[tuple[int, ...], ...] = (
    (4, 30, 55, 72, 95),  # aquatic mammals
    (1, 32, 67, 73, 91),  # fish
    (54, 62, 70, 82, 92),  # flowers
    (9, 10, 16, 28, 61),  # food containers
    (0, 51, 53, 57, 83),  # fruit and vegetables
    (22, 39, 40, 86, 87),  # household electrical devices
    (5, 20, 25, 84, 94),  # household furniture
    (6, 7, 14, 18, 24),  # insects
    (3, 42, 43, 88, 97),  # large carnivores
    (12, 17, 37, 68, 76),  # large man-made outdoor things
    (23, 33, 49, 60, 71),  # large natural outdoor scenes
    (15, 19, 21, 31, 38),  # large omnivores and herbivores
    (34, 63, 64, 66, 75),  # medium mammals
    (26, 45, 77, 79, 99),  # non-insect invertebrates
    (2, 11, 35, 46, 98),  # people
    (27, 29, 44, 78, 93),  # reptiles
    (36, 50, 65, 74, 80),  # small mammals
    (47, 52, 56, 59, 96),  # trees
    (8, 13, 48, 58, 90),  # vehicles 1
    (41, 69, 81, 85, 89),  # vehicles 2
)
"""CIFAR-100's 20 super-classes in the publisher's order, each with its five classes."""


def _next_in_group(groups: Iterable[Sequence[int]]) -> dict[int, int]:
    return {
        label: group[(place + 1) % len(group)]
        for group in groups
        for place, label in enumerate(group)
    }


_DIGITS = {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}

CONFUSIONS: Mapping[str, Mapping[int, int]] = {
    "digits": _DIGITS,
    "mnist": _DIGITS,
    # Truck as automobile, bird as airplane, deer as horse, cat and dog exchanged.
    "cifar10": {9: 1, 2: 0, 4: 7, 3: 5, 5: 3},
    # Each class as the next of its super-class, the last as the first.
    "cifar100": _next_in_group(SUPER_CLASSES),
}
"""For each dataset, the classes that are written as another one, as the paper's text has it."""

REFERENCE_CONFUSIONS: Mapping[str, Mapping[int, int]] = {
    # In the code's order, which matters: see IN_TURN.
    "cifar10": {9: 1, 2: 0, 3: 5, 5: 3, 4: 7},
    "cifar100": _next_in_group([range(start, start + 5) for start in range(0, 100, 5)]),
}
"""The same as the authors' code has it, where that is something else.

It groups CIFAR-100's classes as their names stand in the alphabet, 0 to 4, 5 to 9 and so on, which
are not the super-classes: apples are taken for aquarium fish. The published numbers for asymmetric
noise on CIFAR-100 come from this grouping.
"""

IN_TURN = frozenset({"cifar10"})
"""Datasets whose classes the code flips one after the other, on the labels as they stand by then.

On CIFAR-10 cats become dogs first; then dogs become cats, those among them that were cats a moment
ago included. Of rate 0.4, 24% of the cats end as dogs, and 18.4% of all labels are wrong instead of
20%. So it is in the public code of the losses that the paper's protocol follows (HanxunH's
Active-Passive-Losses), and in what many others made of it.
"""
