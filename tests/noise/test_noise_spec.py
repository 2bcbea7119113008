import numpy as np
import pytest

from labelproof.noise import CONFUSIONS, asymmetric_matrix, parse_noise, symmetric_matrix


@pytest.mark.parametrize("text", ["none", "symmetric:0.4", "asymmetric:0.25", "pair:0"])
def test_text_round_trips(text: str) -> None:
    assert str(parse_noise(text)) == text


@pytest.mark.parametrize(
    "text", ["", "symmetric", "symmetric:", "symmetric:lots", "none:0.1", "x:1"]
)
def test_bad_text_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected KIND:RATE"):
        parse_noise(text)


def test_a_rate_outside_is_refused() -> None:
    with pytest.raises(ValueError, match="noise rate"):
        parse_noise("symmetric:1.5")


def test_the_matrix_is_the_kinds_own() -> None:
    np.testing.assert_array_equal(
        parse_noise("symmetric:0.3").matrix(10, dataset="digits"), symmetric_matrix(10, 0.3)
    )
    np.testing.assert_array_equal(
        parse_noise("asymmetric:0.3").matrix(10, dataset="mnist"),
        asymmetric_matrix(10, 0.3, confusions=CONFUSIONS["mnist"]),
    )
    np.testing.assert_array_equal(parse_noise("none").matrix(4, dataset="any"), np.eye(4))
    assert parse_noise("pair:0.3").matrix(3, dataset="any")[2, 0] == 0.3


def test_asymmetric_noise_needs_a_dataset_that_has_it() -> None:
    with pytest.raises(ValueError, match="no classes of 'iris' are known to be confused"):
        parse_noise("asymmetric:0.3").matrix(3, dataset="iris")
