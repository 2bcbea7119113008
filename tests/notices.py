"""What a loader says beside what it returns."""

import warnings
from collections.abc import Callable
from typing import Any

from labelproof.data.notices import DataWarning


def told(load: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, list[str]]:
    """What a call returns, and the messages of its warnings, all of them about data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = load(*arguments, **options)
    assert all(issubclass(entry.category, DataWarning) for entry in caught)
    return found, [str(entry.message) for entry in caught]
