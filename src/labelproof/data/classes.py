"""Class names: their order, checks, and those of the published datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from labelproof.data.notices import count, few, notice


class UnusableSamplesError(ValueError):
    """Some samples cannot be used.

    The advice is apart from the reason, since it depends on the caller: training may leave samples
    out, predictions that are matched row by row may not.
    """

    def __init__(self, reason: str, advice: str):
        super().__init__(reason, advice)
        self.reason, self.advice = reason, advice

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}"


def order_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, in the same order on every system: numbers by value, anything else as text.

    Text goes by code points, as torchvision sorts the folders of a dataset.
    """
    different = set(names)
    if all(name.isascii() and name.isdigit() for name in different):
        # By their digits: int() refuses very long numbers.
        different = sorted(sorted(different), key=lambda name: name.lstrip("0"))
        return tuple(sorted(different, key=lambda name: len(name.lstrip("0"))))
    return tuple(sorted(different))


def check_classes(place: str, names: Sequence[str], *, num_images: int | None) -> None:
    """Refuse classes that no classifier can learn; warn of names that may be one class.

    `num_images` is how many samples have these labels; `None` where the classes were listed.
    """
    if len(names) < 2:
        raise ValueError(f"{place}: expected at least two classes, got {_found(names)}")
    if num_images is not None and len(names) >= max(num_images, 3):
        raise ValueError(
            f"{place}: expected labels that samples share, got {count(num_images, 'sample')} with "
            f"{count(len(names), 'label')} ({few(names)}); these look like names of single samples"
        )
    spellings: dict[str, list[str]] = defaultdict(list)
    for name in names:
        spellings[" ".join(name.casefold().split())].append(name)
    for same in spellings.values():
        if len(same) > 1:
            written = " and ".join(repr(name) for name in same)
            differ = f"the classes {written} differ only in case or spaces"
            notice(f"{place}: {differ}; if they are one class, write them alike")


def check_left(place: str, before: Sequence[str], left: Sequence[str]) -> None:
    """Refuse labels that leave less than two classes; warn of classes left empty."""
    if len(left) < 2:
        raise ValueError(f"{place}: expected to leave at least two classes, got {_found(left)}")
    empty = [name for name in before if name not in set(left)]
    if empty:
        notice(
            f"{place}: {count(len(empty), 'class', 'classes')} left without any training sample: "
            f"{few(empty)}"
        )


def _found(names: Sequence[str]) -> str:
    return f"only {names[0]!r}" if names else "none"


DIGITS = tuple("0123456789")
"""Of `digits` and `mnist`."""

FASHION_MNIST = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
"""Of `fashion-mnist`."""

CIFAR10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
"""Of `cifar10`."""

CIFAR100 = (
    *("apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle"),
    *("bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle"),
    *("caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch"),
    *("crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest"),
    *("fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower"),
    *("leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain"),
    *("mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear"),
    *("pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit"),
    *("raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk"),
    *("skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower"),
    *("sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor", "train"),
    *("trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm"),
)
"""Of `cifar100`, the fine labels."""
