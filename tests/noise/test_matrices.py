import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.noise import asymmetric_matrix, check_matrix, pair_matrix, symmetric_matrix

rates = st.floats(0, 1)
classes = st.integers(2, 30)


@settings(derandomize=True, deadline=None)
@given(classes, rates)
def test_every_row_is_a_distribution_and_the_diagonal_is_what_stays(
    num_classes: int, rate: float
) -> None:
    for matrix in (symmetric_matrix(num_classes, rate), pair_matrix(num_classes, rate)):
        assert check_matrix(matrix) is not None
        np.testing.assert_allclose(np.diag(matrix), 1 - rate)


def test_only_confused_classes_flip() -> None:
    matrix = asymmetric_matrix(4, 0.3, confusions={1: 2, 2: 1})
    np.testing.assert_allclose(matrix[0], [1, 0, 0, 0])
    np.testing.assert_allclose(matrix[1], [0, 0.7, 0.3, 0])
    np.testing.assert_allclose(matrix[2], [0, 0.3, 0.7, 0])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 0.0], [0.5, 0.4]]), "row 1"),
        (np.array([[1.5, -0.5], [0.0, 1.0]]), "at least 0, got -0.5 in row 0, column 1"),
        (np.array([[np.nan, 1.0], [0.0, 1.0]]), "finite chances of at least 0, got nan"),
    ],
)
def test_a_matrix_that_is_none_is_refused(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_matrix(matrix)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"rate: expected a number in \[0, 1\], got 1.2"):
        symmetric_matrix(10, 1.2)
    with pytest.raises(ValueError, match="num_classes: expected at least 2, got 1"):
        symmetric_matrix(1, 0.2)
    with pytest.raises(ValueError, match="confusions: expected classes from 0 to 2, got 0 -> 7"):
        asymmetric_matrix(3, 0.2, confusions={0: 7})
