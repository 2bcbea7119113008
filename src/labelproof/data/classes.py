"""Class names out of folders and columns: their order, and what cannot be right about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from labelproof.data.notices import count, few, notice
from labelproof.data.whole_numbers import is_whole

__all__ = ["check_classes", "check_left", "order_classes", "report_spellings"]


def order_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in the same order on every system: numbers by value, anything else as text.

    Text goes by code points, as torchvision sorts the folders of a dataset.

    >>> order_classes(["dog", "Cat", "dog"]), order_classes(["10", "9", "2"])
    (('Cat', 'dog'), ('2', '9', '10'))
    """
    different = set(names)
    if all(is_whole(name) for name in different):
        return tuple(sorted(different, key=_value))
    return tuple(sorted(different))


def _value(number: str) -> tuple[int, str, str]:
    # By its digits: int() refuses very long numbers.
    digits = number.lstrip("0")
    return len(digits), digits, number


def check_classes(place: str, names: Sequence[str], *, num_images: int | None) -> None:
    """Refuse what no classifier can be trained on; warn of names that may be one class.

    Args:
        place: Where the labels come from, for the message.
        names: The classes.
        num_images: Images to train on, where the names are the labels they carry; `None` where
            the names were written down by someone.

    >>> check_classes("photos", ["cat"], num_images=20)
    Traceback (most recent call last):
        ...
    ValueError: photos: expected at least two classes, got only 'cat'
    """
    if len(names) < 2:
        found = f"only {names[0]!r}" if names else "none"
        raise ValueError(f"{place}: expected at least two classes, got {found}")
    if num_images is not None and len(names) >= max(num_images, 3):
        raise ValueError(
            f"{place}: expected labels that images share, got {count(num_images, 'image')} with "
            f"{count(len(names), 'label')} ({few(names)}); these look like names of single images"
        )
    report_spellings(place, names)


def check_left(place: str, before: Sequence[str], left: Sequence[str]) -> None:
    """Refuse labels that leave less than two classes to learn from; warn of those they empty.

    Args:
        place: Where the labels come from, for the message.
        before: The classes that samples had without them.
        left: The classes that samples have with them.

    Example:
        >>> check_left("reviewed.csv", ["cat", "dog"], ["cat"])
        Traceback (most recent call last):
            ...
        ValueError: reviewed.csv: expected to leave at least two classes, got only 'cat'
    """
    if len(left) < 2:
        found = f"only {left[0]!r}" if left else "none"
        raise ValueError(f"{place}: expected to leave at least two classes, got {found}")
    kept = set(left)
    empty = [name for name in before if name not in kept]
    if empty:
        notice(
            f"{place}: {count(len(empty), 'class', 'classes')} left without any training sample: "
            f"{few(empty)}"
        )


def report_spellings(place: str, names: Sequence[str]) -> None:
    """Warn of classes that may be one.

    Args:
        place: Where the labels come from, for the message.
        names: The classes.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     report_spellings("y", ["yes", "YES ", "no"])
        >>> print(caught[0].message)
        y: the classes 'yes' and 'YES ' differ only in case or spaces; are they one?
    """
    spellings: dict[str, list[str]] = defaultdict(list)
    for name in names:
        spellings[" ".join(name.casefold().split())].append(name)
    for same in spellings.values():
        if len(same) > 1:
            written = " and ".join(repr(name) for name in same)
            notice(f"{place}: the classes {written} differ only in case or spaces; are they one?")
