"""Transition matrices: whose labels go where, and which classes they drown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelproof.data.published import known_dataset
from labelproof.noise import (
    CONFUSIONS,
    REFERENCE_CONFUSIONS,
    SUPER_CLASSES,
    UnlearnableClassWarning,
    asymmetric_matrix,
    check_matrix,
    corrupt,
    find_rivals,
    pair_matrix,
    parse_noise,
    symmetric_matrix,
)

MNIST_SIZES = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(2, 30), st.floats(0, 1))
def test_every_row_is_a_distribution_and_the_diagonal_is_what_stays(
    num_classes: int, rate: float
) -> None:
    for matrix in (symmetric_matrix(num_classes, rate), pair_matrix(num_classes, rate)):
        assert check_matrix(matrix) is not None
        np.testing.assert_allclose(np.diag(matrix), 1 - rate)


def test_only_confused_classes_flip() -> None:
    matrix = asymmetric_matrix(4, 0.3, confusions={1: 2, 2: 1})
    expected = [[1, 0, 0, 0], [0, 0.7, 0.3, 0], [0, 0.3, 0.7, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(matrix, expected)


def test_bad_arguments_are_named() -> None:
    for rows, named in (
        (np.ones((2, 3)), "square"),
        ([[1.0, 0.0], [0.5, 0.4]], "row 1"),
        ([[1.5, -0.5], [0.0, 1.0]], "-0.5 at least .* row 0"),
        ([[np.nan, 1.0], [0.0, 1.0]], "nan .* row 0"),
        ([[np.inf, 0.0], [0.0, 1.0]], "inf .* row 0"),
    ):
        with pytest.raises(ValueError, match=named):
            check_matrix(np.array(rows))
    for named, call in (
        ("rate", lambda: symmetric_matrix(10, 1.2)),
        ("num_classes", lambda: symmetric_matrix(1, 0.2)),
        ("confusions", lambda: asymmetric_matrix(3, 0.2, confusions={0: 7})),
        *(
            ("class_sizes", lambda sizes=sizes: find_rivals(np.eye(3), class_sizes=sizes))
            for sizes in ([1, 2], [1, 2, -1], [1, 2, np.nan])
        ),
    ):
        with pytest.raises(ValueError, match=named):
            call()


# Which classes are confused.


def test_the_named_confusions_are_the_papers() -> None:
    assert CONFUSIONS["mnist"] == {2: 7, 3: 8, 5: 6, 6: 5, 7: 1}
    names = known_dataset("cifar10").class_names
    written = {f"{names[true]} {names[label]}" for true, label in CONFUSIONS["cifar10"].items()}
    pairs = ("truck automobile", "bird airplane", "deer horse", "cat dog", "dog cat")
    assert written == set(pairs)


def test_cifar100_flips_within_its_super_classes_or_as_the_code_along_the_alphabet() -> None:
    assert [len(group) for group in SUPER_CLASSES] == [5] * 20
    assert sorted(label for group in SUPER_CLASSES for label in group) == list(range(100))
    chain = [4, 30, 55, 72, 95]  # beaver, dolphin, otter, seal, whale
    assert [CONFUSIONS["cifar100"][label] for label in chain] == [30, 55, 72, 95, 4]
    group = {label: place for place, labels in enumerate(SUPER_CLASSES) for label in labels}
    assert all(group[true] == group[written] for true, written in CONFUSIONS["cifar100"].items())
    reference = REFERENCE_CONFUSIONS["cifar100"]
    assert [reference[label] for label in (*range(6), 99)] == [1, 2, 3, 4, 0, 6, 95]
    for kind in ("asymmetric", "asymmetric-reference"):
        matrix = parse_noise(f"{kind}:0.3").matrix(100, dataset="cifar100")
        np.testing.assert_allclose(matrix.diagonal(), 0.7)
        # Each class is also the one that another is taken for.
        np.testing.assert_allclose(matrix.sum(axis=0), 1)


def test_the_code_flips_cifar10_class_after_class_so_that_cats_come_back() -> None:
    matrix = parse_noise("asymmetric-reference:0.4").matrix(10, dataset="cifar10")
    cat, dog = 3, 5
    assert matrix[cat, dog] == pytest.approx(0.4 * 0.6)
    assert matrix[dog, cat] == pytest.approx(0.4)
    assert 1 - np.trace(matrix) / 10 == pytest.approx(0.184)
    # The same by doing it, as the code does.
    labels = np.repeat(np.arange(10), 5000)
    true, generator = labels.copy(), np.random.default_rng(0)
    for source, target in ((9, 1), (2, 0), (3, 5), (5, 3), (4, 7)):
        places = np.flatnonzero(labels == source)
        labels[generator.choice(places, int(0.4 * len(places)), replace=False)] = target
    counted = np.zeros((10, 10))
    np.add.at(counted, (true, labels), 1 / 5000)
    np.testing.assert_allclose(counted, matrix, atol=0.02)


# Which classes drown.


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


def test_rows_and_columns_that_are_beaten_are_named_and_a_draw_is_lost() -> None:
    (row,) = find_rivals(
        asymmetric_matrix(4, 0.6, confusions={1: 2}), class_sizes=[100, 100, 900, 100]
    )
    assert row == "class 1 is written 2 with chance 0.6 and 1 with chance 0.4"
    (column,) = find_rivals(symmetric_matrix(3, 0.3), class_sizes=[10_000, 10_000, 1000])
    assert column == "label 2 stands on about 1500 samples of class 0 and 700 of its own"
    for num_classes in (2, 3, 10, 100):
        tie = 1 - 1 / num_classes
        for rate in (tie, np.nextafter(tie, 0), np.nextafter(tie, 1)):
            assert len(find_rivals(symmetric_matrix(num_classes, rate))) == 2 * num_classes
        assert find_rivals(symmetric_matrix(num_classes, tie - 0.01)) == []


def test_the_warning_is_short_from_the_users_line_and_of_the_classes_that_came() -> None:
    with pytest.warns(
        UnlearnableClassWarning, match=r"class 0 is written .* and 197 more"
    ) as found:
        corrupt(np.arange(1000) % 100, symmetric_matrix(100, 1), seed=0)
    assert found[0].filename == __file__
    with pytest.warns(UnlearnableClassWarning, match="label 1 stands on about 200 samples"):
        corrupt(np.repeat([0, 1], [1000, 100]), symmetric_matrix(2, 0.2), seed=0)
