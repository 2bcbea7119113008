import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audits import make_audit, make_findings, make_photos
from made_images import make_image, pixels, write_images
from PIL import Image
from sklearn.datasets import load_digits

from labelproof.audit.folder import Audit
from labelproof.audit.labels import audit_given
from labelproof.audit.samples import (
    Samples,
    features_of,
    find_neighbours,
    mark_rows,
    open_samples,
    read_cells,
)
from labelproof.data import load_dataset
from labelproof.data.dataset import Split
from labelproof.data.images import ImageFiles, UnreadableImageError, as_picture, sample_names
from labelproof.data.labels_file import relabel
from labelproof.data.notices import DataWarning


def audit_of(data: Path | str, **options: str) -> Audit:
    """An audit of data that are there, with findings that were made up."""
    dataset = load_dataset(data, on_error="skip", label=options.get("label"))
    if "labels" in options:
        dataset = relabel(dataset, data, options["labels"])
    findings, _ = make_findings(len(dataset.train), dataset.num_classes)
    names = sample_names(dataset.train, data)
    return make_audit(
        replace(findings, given=dataset.train.labels),
        dataset.class_names,
        data=str(data),
        kind="rows" if dataset.tabular else "images",
        samples=names,
        options=options,
        marks=mark_rows(read_cells(dataset, data), names),
    )


def colours(picture: tuple[bytes, str]) -> np.ndarray:
    """What is seen of a picture."""
    return pixels(Image.open(io.BytesIO(picture[0])))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    write_images(tmp_path / "photos", [f"{kind}/{n}.png" for kind in ("cat", "dog") for n in "012"])
    return tmp_path / "photos"


def test_small_images_are_shown_as_they_are(photos: Path) -> None:
    samples = open_samples(audit_of(photos))
    assert samples.kind == "images"
    for place in range(6):
        picture = samples.picture(place, side=160)
        assert picture[1] == "image/png"
        assert np.array_equal(colours(picture), pixels(make_image(place)))
    table = photos.parent / "table.csv"
    names = sorted(str(path.relative_to(photos.parent)) for path in photos.rglob("*.png"))
    table.write_text("path,label\n" + "".join(f"{n},{n[7:10]}\n" for n in reversed(names)))
    samples = open_samples(audit_of(table))
    assert samples.audit.samples == names[::-1]
    assert np.array_equal(colours(samples.picture(0, side=96)), pixels(make_image(5)))


def test_rows_are_shown_as_they_are_written_beside_rows_that_were_left_out(tmp_path: Path) -> None:
    rows = "size,colour,kind\n1,red,x\n\n2,blue,y\n3,red,\n4,,x\n5,red,y\n"
    (tmp_path / "t.csv").write_text(rows)
    with pytest.warns(DataWarning):
        samples = open_samples(audit_of(tmp_path / "t.csv", label="kind"))
    assert samples.kind == "rows"
    assert samples.audit.samples == ["line 2", "line 4", "line 6", "line 7"]
    assert samples.cells(1) == [("size", "2"), ("colour", "blue"), ("kind", "y")]
    assert samples.cells(2) == [("size", "4"), ("colour", ""), ("kind", "x")]


def test_an_image_that_has_vanished_is_named_and_the_others_are_shown(photos: Path) -> None:
    audit = audit_of(photos)
    (photos / "cat" / "1.png").unlink()
    samples = open_samples(audit)
    assert samples.audit.index.tolist() == [0, -1, 1, 2, 3, 4]
    assert samples.audit.samples == audit.samples
    with pytest.raises(UnreadableImageError, match=r"cat/1\.png: is no longer in the data"):
        samples.picture(1, side=96)
    for place in (0, 2, 3, 4, 5):
        assert np.array_equal(colours(samples.picture(place, side=96)), pixels(make_image(place)))


def test_a_row_that_another_has_taken_the_place_of_is_not_shown(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,label\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n")
    audit = audit_of(table)
    table.write_text("a,label\n1,x\n3,x\n4,y\n5,x\n6,y\n")
    samples = open_samples(audit)
    assert samples.cells(0) == [("a", "1"), ("label", "x")]
    assert samples.cells(1) == []
    # With noise on them, the labels of an audit are not the data's.
    rehearsed = open_samples(replace(audit, method={"noise": "symmetric:0.2"}, marks=None))
    assert rehearsed.cells(1) == [("a", "3"), ("label", "x")]


def test_a_row_is_known_again_when_others_change_and_in_another_process(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,label\n1,x\n,y\n3,x\n4,y\n")
    places = ["line 2", "line 3", "line 4", "line 9"]
    dataset = load_dataset(table)
    before = mark_rows(read_cells(dataset, table), places)
    # The marks of an audit on disk are compared with those that a later process finds.
    assert before.tolist() == [76157716, 2986833095, 3045821037, 0]
    # A fraction in another row makes the column one of floats.
    table.write_text("a,label\n1,x\n2.5,y\n3,x\n4,y\n")
    again = mark_rows(read_cells(dataset, table), places)
    assert (again == before).tolist() == [True, False, True, True]


def test_other_data_are_refused_and_those_that_have_moved_are_taken(photos: Path) -> None:
    audit = audit_of(photos)
    other = photos.parent / "other"
    write_images(other, [f"{kind}/{n}.png" for kind in ("cat", "dog") for n in "789"])
    with pytest.raises(ValueError, match="contain none of the audit's samples"):
        open_samples(replace(audit, data=str(other)))
    (other / "dog").rename(other / "wolf")
    with pytest.raises(ValueError, match="classes of the audit; different: dog, wolf"):
        open_samples(replace(audit, data=str(other)))
    moved = photos.rename(photos.parent / "elsewhere")
    with pytest.raises(FileNotFoundError, match="photos"):
        open_samples(audit)
    samples = open_samples(replace(audit, data=str(moved)))
    assert np.array_equal(colours(samples.picture(5, side=96)), pixels(make_image(5)))


def test_labels_from_a_file_are_put_on_again(photos: Path) -> None:
    file = photos.parent / "reviewed.csv"
    file.write_text("sample,label\ncat/0.png,\ncat/1.png,dog\n")
    audit = audit_of(photos, labels=str(file))
    assert audit.samples[0] == "cat/1.png"
    samples = open_samples(audit)
    assert samples.dataset.train.labels.tolist() == [1, 0, 1, 1, 1]
    assert np.array_equal(colours(samples.picture(0, side=96)), pixels(make_image(1)))
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"reviewed\.csv"):
        open_samples(audit)


def test_without_data_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    audit = replace(make_photos(tmp_path / "photos", samples=6), kind="unknown", data="nowhere")
    samples = open_samples(audit)
    assert samples.kind == "unknown"
    assert samples.dataset is None
    assert Samples(replace(audit, kind="images"), None).kind == "unknown"


def test_garbage_of_a_kind_and_a_brighter_copy_are_found_among_images(tmp_path: Path) -> None:
    # Scikit-learn's digits as pictures: garbage resembles garbage, and is an outlier all the same.
    images = (load_digits()["images"][:600, None] * 15).astype(np.uint8).repeat(2, 2).repeat(2, 3)
    generator = np.random.default_rng(0)
    images[:6] = generator.integers(256, size=images[:6].shape)
    images[6:9] = 255
    images[20] = np.clip(images[30] * 1.05, 0, 255)
    files = [str(tmp_path / f"{number}.png") for number in range(600)]
    for image, file in zip(images, files, strict=True):
        as_picture(image).save(file)
    for source in (images, ImageFiles(files, mode="L")):
        features = features_of(Split(source, np.zeros(600, np.int64)), np.arange(600))
        assert features is not None
        found = find_neighbours(features)
        assert found.outlier[:9].all()
        assert found.outlier[9:].mean() < 0.02
        assert (found.duplicate_of[20], found.duplicate_of[30]) == (30, 20)
        assert (found.duplicate_of[9:] >= 0).mean() < 0.05


def test_texts_of_words_that_no_other_text_has_are_not_near_duplicates() -> None:
    generator = np.random.default_rng(0)
    words = ["good", "bad", "film", "plot", "actor", "scene", "music", "light", "sound", "story"]
    texts = [" ".join(generator.choice(words, 6)) for _ in range(120)]
    texts[5:8] = ["Zugspitze marmalade quasar", "xylophones frighten zebras", "Wien"]
    texts[20] = f"{texts[30]} !"
    table = pd.DataFrame({"text": texts, "label": generator.choice(["x", "y"], 120)})
    audit = audit_given(np.full((120, 2), 0.5), load_dataset(table, label="label"))
    assert np.flatnonzero(audit.duplicate_of >= 0).tolist() == [20, 30]
