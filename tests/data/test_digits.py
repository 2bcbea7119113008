import numpy as np

from labelproof.data import load_digits


def test_the_split_is_fixed_stratified_and_disjoint() -> None:
    digits, again = load_digits(), load_digits()
    np.testing.assert_array_equal(digits.train.array, again.train.array)
    assert len(digits.train) + len(digits.test) == 1797
    shares = np.bincount(digits.test.labels) / np.bincount(digits.train.labels)
    np.testing.assert_allclose(shares, 450 / 1347, atol=0.02)


def test_images_use_the_whole_range_and_are_described_by_their_statistics() -> None:
    digits = load_digits()
    assert digits.train.array.dtype == np.uint8
    assert digits.train.array.max() == 255
    scaled = digits.train.array / 255
    np.testing.assert_allclose([digits.mean[0], digits.std[0]], [scaled.mean(), scaled.std()])
    assert digits.class_names == tuple("0123456789")
    assert digits.num_classes == 10
