import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_page import Page
from made_images import write_images

from labelproof.data import Dataset, Split, load_digits
from labelproof.data.images import ImageFiles
from labelproof.noise import NoisyLabels, corrupt, pair_matrix, symmetric_matrix
from labelproof.report.dataset import finding, write_dataset_page


def written(path: Path, *arguments: Any, **options: Any) -> Page:
    return Page(write_dataset_page(path / "page.html", *arguments, **options).read_text("utf-8"))


def made_dataset(num_classes: int = 4, images: int = 40, *, clean: bool = True) -> Dataset:
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (images, 3, 8, 8), dtype=np.uint8)
    labels = np.arange(images) % num_classes
    names = ("<script>alert(1)</script>", "$x$", '"quoted" & more')
    names = (*names, *(f"class {number}" for number in range(num_classes)))[:num_classes]
    return Dataset("made", {"train": Split(pixels, labels)}, names, (0.5,) * 3, (0.3,) * 3, clean)


def noise_on(dataset: Dataset, rate: float = 0.4) -> NoisyLabels:
    matrix = symmetric_matrix(dataset.num_classes, rate)
    return corrupt(dataset.train.labels, matrix, seed=1)


def test_the_page_stands_alone_and_escapes_what_it_shows(tmp_path: Path) -> None:
    dataset = made_dataset()
    page = written(tmp_path, dataset, noise_on(dataset))
    assert "script" not in page.tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "link" not in page.tags
    assert page.sources
    assert all(source.startswith("data:image/") for source in page.sources)
    assert not any(word in page.text for word in ("http:", "https:", "script-src", "@import"))
    assert "default-src 'none'" in page.text


def test_the_rate_comes_first_in_words_with_what_was_meant(tmp_path: Path) -> None:
    digits = load_digits()
    noisy = corrupt(digits.train.labels, symmetric_matrix(10, 0.6), seed=1)
    wrong = int((noisy.noisy != digits.train.labels).sum())
    text = finding(digits, noisy)
    assert text.startswith(f"{100 * wrong / 1347:.1f}% of the training labels are wrong: {wrong} ")
    assert "intended rate was 60.0%" in text
    page = write_dataset_page(tmp_path / "page.html", digits, noisy).read_text(encoding="utf-8")
    assert page.index(text) < page.index("<h2>")
    written = replace(noisy, matrix=noisy.empirical_matrix)
    assert finding(digits, written).endswith(" of 1,347.")


def test_wrong_labels_are_marked_in_words_and_not_by_colour_alone(tmp_path: Path) -> None:
    dataset = made_dataset()
    noisy = noise_on(dataset)
    page = written(tmp_path, dataset, noisy, samples=400)
    wrong = [text for text in page.alternatives if "really" in text]
    assert len(page.alternatives) == len(dataset.train)
    assert len(wrong) == noisy.flipped.sum() == page.text.count("✗ really")
    assert page.text.count("✓ right") == (~noisy.flipped).sum()
    pairs = {
        f"labelled {dataset.class_names[given]}, really {dataset.class_names[true]}"
        for given, true in zip(noisy.noisy, noisy.clean, strict=True)
        if given != true
    }
    assert set(wrong) == pairs
    # A user's labels are changed, and not known to be wrong.
    page = written(tmp_path, made_dataset(clean=False), noisy)
    assert "of the training labels were changed" in page.text
    assert "How many were wrong before is not known." in page.text
    assert not any("really" in text or "right" in text for text in page.alternatives)
    assert "✓ kept" in page.text


def test_both_matrices_and_the_counts_before_and_after_are_there(tmp_path: Path) -> None:
    dataset = made_dataset(4, 80)
    noisy = corrupt(dataset.train.labels, pair_matrix(4, 0.3), seed=1)
    page = written(tmp_path, dataset, noisy)
    cells = re.findall(r'--share: [\d.]+">([\d.·]+)</td>', page.text)
    assert len(cells) == 2 * 16
    assert cells[:4] == ["70", "30", "·", "·"]
    shares = [float(cell.replace("·", "0")) for cell in cells[16:]]
    np.testing.assert_allclose(shares, 100 * noisy.empirical_matrix.ravel(), atol=0.5)
    rows = re.findall(r"</th><td>(\d+)</td>\n<td>(\d+)</td><td>(\d+)%</td>", page.text)
    after = np.bincount(noisy.noisy, minlength=4)
    wrong = np.bincount(noisy.noisy[noisy.flipped], minlength=4)
    assert rows == [("20", str(n), f"{100 * w / n:.0f}") for n, w in zip(after, wrong, strict=True)]


def test_many_classes_get_a_picture_and_the_most_frequent_confusions(tmp_path: Path) -> None:
    dataset = made_dataset(100, 2000)
    noisy = noise_on(dataset)
    page = written(tmp_path, dataset, noisy, samples=30)
    assert page.alternatives[-2:] == [
        "The noise matrix, intended, 100 by 100",
        "The noise matrix, observed, 100 by 100",
    ]
    assert "10 of 100 classes, drawn at random." in page.text
    assert len(page.alternatives) == 30 + 2
    most = noisy.counts * (1 - np.eye(100, dtype=np.int64))
    first = re.search(r"<td class=\"words\">.*?</td><td>(\d+)</td>", page.text)
    assert int(first[1]) == most.max()


def test_without_noise_the_labels_are_shown_as_they_came(tmp_path: Path) -> None:
    page = written(tmp_path, load_digits(), None, samples=20)
    assert "1,347 training images with their given labels, 131 to 137 in each" in page.text
    assert "✗" not in page.text
    assert "matrix" not in page.text
    assert len(page.alternatives) == 20
    own = replace(load_digits(), clean=False)
    assert finding(own, None).endswith("How many are wrong is not known.")
    with pytest.raises(ValueError, match="samples: expected at least 1, got 0"):
        written(tmp_path, own, None, samples=0)


def test_photos_of_any_size_are_decoded_and_made_small(tmp_path: Path) -> None:
    names = [f"{number}.jpg" for number in range(4)]
    write_images(tmp_path, names, size=(900, 600))
    source = ImageFiles([str(tmp_path / name) for name in names])
    photos = replace(made_dataset(2, 4), splits={"train": Split(source, np.array([0, 1, 0, 1]))})
    path = write_dataset_page(tmp_path / "page.html", photos, noise_on(photos))
    assert "900 × 600, colour (the first; others may differ)" in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 100_000
