import warnings

import pytest

from labelproof.data.classes import check_left
from labelproof.data.notices import DataWarning


@pytest.mark.parametrize(("left", "found"), [(["dog"], "only 'dog'"), ([], "none")])
def test_nothing_is_learned_from_one_class(left: list[str], found: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^r\.csv: expected .* at least two classes, got {found}$"
    ):
        check_left("r.csv", ["cat", "dog"], left)


def test_what_two_classes_have_lost_is_named() -> None:
    with pytest.warns(DataWarning, match="^r.csv: 1 class left without any training sample: eel$"):
        check_left("r.csv", ["cat", "dog", "eel"], ["cat", "dog"])


def test_a_class_may_be_gained() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_left("r.csv", ["cat", "dog"], ["cat", "dog", "eel"])
