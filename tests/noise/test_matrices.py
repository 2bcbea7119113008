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


def test_bad_arguments_are_named() -> None:
    for rows, named in (
        (np.ones((2, 3)), "square"),
        ([[1.0, 0.0], [0.5, 0.4]], "row 1"),
        ([[1.5, -0.5], [0.0, 1.0]], "row 0, column 1"),
        ([[np.nan, 1.0], [0.0, 1.0]], "finite"),
    ):
        with pytest.raises(ValueError, match=named):
            check_matrix(np.array(rows))
    with pytest.raises(ValueError, match="rate"):
        symmetric_matrix(10, 1.2)
    with pytest.raises(ValueError, match="num_classes"):
        symmetric_matrix(1, 0.2)
    with pytest.raises(ValueError, match="confusions"):
        asymmetric_matrix(3, 0.2, confusions={0: 7})
