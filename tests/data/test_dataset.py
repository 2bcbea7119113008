import numpy as np
import pytest

from labelproof.data import Dataset, Split
from labelproof.data.table import dataset_from_rows

ROWS = np.array([[1, 7, 0.1], [3, 7, 0.1], [5, 7, 0.1]], np.float32)
LABELS = np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (ROWS.astype(float), TypeError, r"expected rows of float32, got float64 \(3, 3\)"),
        (ROWS.astype(np.uint8), TypeError, "expected rows of float32, got uint8"),
        (np.where(ROWS == 5, np.nan, ROWS), ValueError, "finite rows, got nan in row 2, feature 0"),
        (np.where(ROWS == 3, np.inf, ROWS), ValueError, "finite rows, got inf in row 1, feature 0"),
        (ROWS[:2], ValueError, "labels: expected one for each of 2 examples, got 3"),
    ],
)
def test_rows_must_be_finite_float32(
    rows: np.ndarray, error: type[Exception], message: str
) -> None:
    rows = rows.astype(np.float32) if error is ValueError else rows
    with pytest.raises(error, match=message):
        Split(rows, LABELS)


def test_a_table_is_standardised_by_feature() -> None:
    dataset = dataset_from_rows(
        "table", {"train": Split(ROWS, LABELS), "test": Split(ROWS * 9, LABELS)}, ["a", "b"], None
    )
    assert dataset.tabular
    assert dataset.input_shape == (3,)
    np.testing.assert_allclose(dataset.mean, [3, 7, 0.1], rtol=1e-6)
    # A feature that never changes is only moved: no rounding error is blown up.
    np.testing.assert_allclose(dataset.std, [float(np.std([1, 3, 5])), 1, 1])
    with pytest.raises(TypeError, match="table: expected images, got rows"):
        _ = dataset.image_shape


def test_what_is_printed_is_short_and_decodes_no_image() -> None:
    large = np.zeros((5000, 40), np.float32)
    labels = np.zeros(5000, np.int64)
    names = tuple(str(number) for number in range(100))
    dataset = Dataset("big", {"train": Split(large, labels)}, names, (0.0,), (1.0,))
    assert repr(dataset.train) == "Split(5,000 rows of 40 features)"
    assert repr(dataset) == (
        "Dataset('big', train: 5,000 rows of 40 features, 100 classes: 0, 1, 2 and 97 more)"
    )
    images = Split(np.zeros((2, 3, 4, 5), np.uint8), labels[:2])
    assert repr(images) == "Split(2 images of 3x4x5)"

    class Source:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int, /) -> np.ndarray:
            raise AssertionError("an image was decoded")

    split = Split(Source(), LABELS)
    assert repr(split) == "Split(3 images, decoded on access)"
    dataset = Dataset("lazy", {"train": split, "test": split}, ("a", "b"), (0.5,), (0.2,))
    assert not dataset.tabular
    wanted = "train: 3 images, decoded on access, test: 3, 2 classes: a, b"
    assert repr(dataset) == f"Dataset('lazy', {wanted})"
