from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audits import make_photos
from made_images import write_images

from labelproof.audit.folder import Audit
from labelproof.data import load_dataset, load_digits
from labelproof.data.dataset import Dataset, Split
from labelproof.data.images import sample_names
from labelproof.data.labels_file import relabel
from labelproof.data.notices import DataWarning
from labelproof.review.decisions import Decisions, Review, export_csv
from labelproof.training import Configuration, choose_examples

FILES = [f"{name}/{number}.png" for name in ("cat", "dog") for number in range(3)]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    write_images(tmp_path / "photos", FILES)
    return tmp_path / "photos"


def relabelled(photos: Path, text: str | bytes, name: str = "reviewed.csv") -> Dataset:
    file = photos.parent / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return relabel(load_dataset(photos), photos, file)


def test_labels_are_those_of_the_file_and_an_empty_one_leaves_the_sample_out(photos: Path) -> None:
    found = relabelled(
        photos, "sample,label,Label\ndog/1.png,cat,a\ncat/0.png,dog,b\ncat/1.png,cat,c\n"
    )
    assert found.train.labels.tolist() == [1, 0, 0, 1, 0, 1]
    assert load_dataset(photos).train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.class_names == ("cat", "dog")
    found = relabelled(photos, "sample,label\ncat/1.png,\ndog/2.png,\ndog/0.png,cat\n")
    assert found.train.labels.tolist() == [0, 0, 0, 1]
    assert sample_names(found.train, photos) == ["cat/0.png", "cat/2.png", "dog/0.png", "dog/1.png"]
    whole = load_dataset(photos).train
    for index, before in enumerate([0, 2, 3, 4]):
        assert np.array_equal(found.train.images[index], whole.images[before])


def review(folder: Path, made: Audit, choices: list[str]) -> Path:
    """Decide about the first suspects, and write down what a review exports."""
    with Decisions(folder / "review.sqlite") as decisions:
        standing = Review(made, decisions)
        for place, choice in zip(made.findings.suspects.tolist(), choices, strict=False):
            standing.decide(place, choice)
        (folder / "reviewed.csv").write_text(export_csv(made, decisions), encoding="utf-8")
    return folder / "reviewed.csv"


def test_what_a_review_exports_is_taken_as_it_was_decided(tmp_path: Path) -> None:
    made = make_photos(tmp_path / "photos", samples=40)
    file = review(tmp_path, made, ["accept", "unsure", "keep", "accept"])
    found = relabel(load_dataset(made.data), made.data, file)
    first, second, third, fourth = made.findings.suspects[:4].tolist()
    expected = made.findings.given.copy()
    for place in (first, fourth):
        expected[place] = made.findings.suggested[place]
    kept = [place for place in range(40) if place != second]
    assert np.array_equal(found.train.labels, expected[kept])
    assert expected[third] == made.findings.given[third]
    assert sample_names(found.train, made.data) == [made.samples[index] for index in kept]


def test_a_table_may_come_from_any_program(photos: Path) -> None:
    for text in (
        b"\xef\xbb\xbfDecision, LABEL ,Sample\r\nx,cat,dog/0.png\r\n\r\nx,,cat/1.png\r\n",
        b"sample;given;label\n dog/0.png ;dog; cat \ncat/1.png;cat;\ndog/0.png;dog;cat",
    ):
        assert relabelled(photos, text).train.labels.tolist() == [0, 0, 0, 1, 1], text


REFUSED = {
    "sample,label\ncat/9.png,dog\ncat/0.png,dog\n": r"1 sample not in .*photos: cat/9\.png",
    "sample,label\ncat/0.png,horse\ncat/1.png,dog\n": "among cat, dog, got horse",
    "sample,label\ncat/0.png,dog\ncat/0.png,cat\n": r"got more for cat/0\.png",
    "sample,label\ncat/0.png,\ncat/0.png,cat\n": r"got more for cat/0\.png",
    "sample,given,suggested\ncat/0.png,cat,dog\n": "columns sample and label, .* got sample, given",
    "path,label\ncat/0.png,dog\n": "columns sample and label, .* got path, label",
    "": "empty",
}


def test_classes_may_have_names_that_stand_for_missing_cells_elsewhere(tmp_path: Path) -> None:
    names = ("nan", "null", "N?A", "cat")
    photos = tmp_path / "photos"
    write_images(photos, [f"{name}/{number}.png" for name in names for number in range(3)])
    found = relabelled(photos, "sample,label\ncat/0.png,nan\ncat/1.png,null\nnan/0.png,\n")
    assert [found.class_names[label] for label in found.train.labels] == [
        *("N?A", "N?A", "N?A", "nan", "null", "cat", "nan", "nan", "null", "null", "null")
    ]


def test_what_does_not_fit_the_data_is_refused(photos: Path) -> None:
    for text, said in REFUSED.items():
        with pytest.raises(ValueError, match=rf"reviewed\.csv.*{said}"):
            relabelled(photos, text)


def test_classes_without_samples_are_told_of(photos: Path) -> None:
    write_images(photos, ["eel/1.png", "eel/2.png", "fox/1.png"], size=(8, 8))
    text = "sample,label\neel/1.png,cat\neel/2.png,\nfox/1.png,dog\n"
    with pytest.warns(DataWarning) as caught:
        found = relabelled(photos, text)
    assert [str(entry.message).partition(": ")[2] for entry in caught] == [
        "2 classes left without any training sample: eel, fox"
    ]
    assert found.class_names == ("cat", "dog", "eel", "fox")


def test_other_splits_stay_as_they_are(tmp_path: Path) -> None:
    names = [f"{split}/{name}" for split in ("train", "test") for name in FILES]
    write_images(tmp_path / "photos", names)
    found = relabelled(tmp_path / "photos", "sample,label\ntrain/dog/0.png,cat\n")
    assert found.train.labels.tolist() == [0, 0, 0, 0, 1, 1]
    assert found.test.labels.tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="1 sample not in"):
        relabelled(tmp_path / "photos", "sample,label\ntest/dog/0.png,cat\n")


def test_rows_are_named_by_their_lines_and_arrays_by_number(tmp_path: Path) -> None:
    table, file = tmp_path / "t.csv", tmp_path / "r.csv"
    table.write_text("a,label\n1,x\n2,y\n3,x\n4,y\n5,x\n")
    file.write_text("sample,label\nline 3,\nline 4,y\n")
    found = relabel(load_dataset(table), table, file)
    assert found.train.labels.tolist() == [0, 1, 1, 0]
    assert found.train.array[:, 0].tolist() == [1, 3, 4, 5]
    assert sample_names(found.train, table) == ["line 2", "line 4", "line 5", "line 6"]
    images = np.arange(4 * 64, dtype=np.uint8).reshape(4, 1, 8, 8)
    dataset = Dataset("a", {"train": Split(images, np.array([0, 1, 0, 1]))}, ("x", "y"), (0,), (1,))
    (tmp_path / "r.csv").write_text("sample,label\n2,y\n1,x\n0,\n")
    for data in (dataset, (images, list("xyxy"))):
        found = load_dataset(data, labels=tmp_path / "r.csv")
        assert found.train.labels.tolist() == [0, 1, 1]
        assert np.array_equal(found.train.array, images[1:])
    assert dataset.train.labels.tolist() == [0, 1, 0, 1]


def test_who_was_left_out_stays_out_in_the_next_round(tmp_path: Path) -> None:
    made = make_photos(tmp_path / "photos", samples=40)
    gone, rest = made.samples[0], list(made.samples[1:])
    names = ("given", "suggested", "score", "likeliest", "probability")
    findings = replace(made.findings, **{name: getattr(made.findings, name)[1:] for name in names})
    audit = replace(made, samples=rest, index=made.index[1:], findings=findings, left_out=(gone,))
    audit.write(tmp_path / "audit")
    assert list(Audit.read(tmp_path / "audit").left_out) == [gone]
    file = review(tmp_path, audit, [])
    found = relabel(load_dataset(made.data), made.data, file)
    assert sample_names(found.train, made.data) == rest


def test_a_table_whose_rows_have_moved_is_refused(tmp_path: Path) -> None:
    table, file = tmp_path / "t.csv", tmp_path / "r.csv"
    rows = [f"{number},{'xyz'[number % 3]}\n" for number in range(30)]
    given = [f"line {number + 2},{'xyz'[number % 3]},{'yzx'[number % 3]}\n" for number in range(30)]
    file.write_text("".join(["sample,given,label\n", *given]))
    table.write_text("".join(["size,kind\n", *rows]))
    found = relabel(load_dataset(table, label="kind"), table, file)
    assert found.train.labels.tolist() == [1, 2, 0] * 10
    table.write_text("".join(["size,kind\n", *rows[:-1]]))
    with pytest.warns(DataWarning, match="1 sample not in .*line 31"):  # removed since
        assert len(relabel(load_dataset(table, label="kind"), table, file).train) == 29
    table.write_text("".join(["size,kind\n", *rows[1:], rows[0]]))
    with pytest.raises(ValueError, match="30 of 30 samples had another label"):
        relabel(load_dataset(table, label="kind"), table, file)


def test_of_a_rare_class_rows_in_another_order_are_refused_and_a_few_edits_are_not(
    tmp_path: Path,
) -> None:
    table, file = tmp_path / "t.csv", tmp_path / "r.csv"
    labels = np.where(np.arange(1000) % 17 == 0, "fraud", "fine")  # 59 are fraud
    rows = [f"line {line},{label},{label}\n" for line, label in enumerate(labels, 2)]
    file.write_text("".join(["sample,given,label\n", *rows]))

    def read(labels: np.ndarray) -> Dataset:
        cells = [f"{number % 97},{label}\n" for number, label in enumerate(labels)]
        table.write_text("".join(["size,kind\n", *cells]))
        return relabel(load_dataset(table, label="kind"), table, file)

    inserted = np.insert(labels, 400, "fine")
    for moved in (np.random.default_rng(0).permutation(labels), labels[::-1], inserted):
        with pytest.raises(ValueError, match="rows in another order"):
            read(moved)
    edited = labels.copy()
    edited[[0, 17, 34, 5, 6]] = ["fine"] * 3 + ["fraud"] * 2
    with pytest.warns(DataWarning, match="5 of 1,000 samples had another label"):
        found = read(edited)
    assert [found.class_names[label] for label in found.train.labels] == edited.tolist()


def test_published_labels_stay_the_truth_and_those_of_a_user_are_none(
    tmp_path: Path, photos: Path
) -> None:
    digits = load_digits()
    labels = [str((label + (n < 300)) % 10) for n, label in enumerate(digits.train.labels)]
    labels[7] = ""
    rows = [f"{n},{label}\n" for n, label in enumerate(labels)]
    (tmp_path / "r.csv").write_text("".join(["sample,label\n", *rows]))
    found = relabel(digits, "digits", tmp_path / "r.csv")
    kept = np.delete(digits.train.labels, 7)
    assert np.array_equal(found.truth, kept)
    for noise in ("none", "symmetric:0.4"):
        examples = choose_examples(Configuration("digits", noise=noise), found)
        wrong = examples.given != kept
        assert examples.clean is found.truth
        assert examples.noise_rate == pytest.approx(wrong.mean())
        assert wrong[:299].mean() > 0.9
    names = list(reversed(found.class_names))
    assert np.array_equal(found.in_classes(names).truth, 9 - kept)
    assert relabelled(photos, "sample,label\ncat/0.png,dog\n").truth is None
