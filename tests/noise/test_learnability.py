import numpy as np
import pytest

from labelproof.noise import (
    CONFUSIONS,
    REFERENCE_CONFUSIONS,
    UnlearnableClassWarning,
    asymmetric_matrix,
    corrupt,
    find_rivals,
    symmetric_matrix,
)

MNIST_SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def test_the_papers_rates_drown_nothing() -> None:
    for rate in (0.0, 0.2, 0.4, 0.6, 0.8):
        for num_classes in (10, 100):
            assert find_rivals(symmetric_matrix(num_classes, rate)) == []
        assert find_rivals(symmetric_matrix(10, rate), class_sizes=MNIST_SIZES) == []
    for confusions, sizes in (
        (CONFUSIONS["mnist"], MNIST_SIZES),
        (CONFUSIONS["cifar10"], [5000] * 10),
        (CONFUSIONS["cifar100"], [500] * 100),
        (REFERENCE_CONFUSIONS["cifar100"], [500] * 100),
    ):
        for rate in (0.1, 0.2, 0.3, 0.4):
            matrix = asymmetric_matrix(len(sizes), rate, confusions=confusions)
            assert find_rivals(matrix, class_sizes=sizes) == []


@pytest.mark.parametrize("num_classes", [2, 3, 10, 100])
def test_a_draw_is_lost_whichever_way_it_rounds(num_classes: int) -> None:
    tie = 1 - 1 / num_classes
    for rate in (tie, np.nextafter(tie, 0), np.nextafter(tie, 1)):
        assert len(find_rivals(symmetric_matrix(num_classes, rate))) == 2 * num_classes
    assert find_rivals(symmetric_matrix(num_classes, tie - 0.01)) == []


def test_a_row_names_the_class_and_what_beats_it() -> None:
    (row,) = find_rivals(
        asymmetric_matrix(4, 0.6, confusions={1: 2}), class_sizes=[100, 100, 900, 100]
    )
    assert row == "class 1 is written 2 with chance 0.6 and 1 with chance 0.4"


def test_a_column_is_weighed_with_the_class_sizes() -> None:
    matrix = symmetric_matrix(3, 0.3)
    assert find_rivals(matrix) == []
    (column,) = find_rivals(matrix, class_sizes=[10_000, 10_000, 1000])
    assert column == "label 2 stands on about 1500 samples of class 0 and 700 of its own"


def test_the_warning_comes_from_the_users_line_and_is_short() -> None:
    labels = np.arange(1000) % 100
    with pytest.warns(
        UnlearnableClassWarning, match=r"class 0 is written .* and 197 more"
    ) as found:
        corrupt(labels, symmetric_matrix(100, 1), seed=0)
    assert found[0].filename == __file__


def test_the_warning_weighs_with_the_classes_that_came() -> None:
    labels = np.repeat([0, 1], [1000, 100])
    with pytest.warns(UnlearnableClassWarning, match="label 1 stands on about 200 samples"):
        corrupt(labels, symmetric_matrix(2, 0.2), seed=0)


def test_bad_class_sizes_are_refused() -> None:
    for sizes in ([1, 2], [1, 2, -1], [1, 2, np.nan]):
        with pytest.raises(ValueError, match="class_sizes"):
            find_rivals(np.eye(3), class_sizes=sizes)
