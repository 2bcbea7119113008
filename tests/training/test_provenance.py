"""What a run was trained on: the fingerprint of its data, and the description of its network."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import StopAfter, small, small_digits, train

from labelproof.data import Dataset, Split, load_digits
from labelproof.data.images import ImageFiles
from labelproof.fitting.recipe import check_network
from labelproof.training import Configuration, Examples, Job, choose_examples, provenance


def of_files(*names: str) -> str:
    files = ImageFiles(list(names))
    split = Split(files, np.arange(len(names)) % 2)
    return provenance.fingerprint(Dataset("photos", {"train": split}, ("a", "b"), (0.5,), (0.5,)))


def test_labels_pixels_and_numbers_are_in_it_and_the_name_is_not() -> None:
    digits = load_digits()
    images, labels = digits.train.array, digits.train.labels
    test = Split(digits.test.array[:-1], digits.test.labels[:-1])
    repainted, relabelled = images.copy(), labels.copy()
    repainted[3] = 255 - repainted[3]
    relabelled[7] = (relabelled[7] + 1) % 10
    found = {
        provenance.fingerprint(replace(digits, splits={**digits.splits, **change}))
        for change in (
            {},
            {"train": Split(images, relabelled)},
            {"train": Split(repainted, labels)},
            {"test": test},
        )
    }
    found |= {provenance.fingerprint(digits, given=given) for given in (labels, relabelled)}
    assert len(found) == 6
    assert provenance.fingerprint(replace(digits, name="numbers")) == provenance.fingerprint(digits)


def test_files_are_the_same_wherever_their_folder_is() -> None:
    there = of_files("/there/photos/cat/1.png", "/there/photos/dog/2.png")
    assert there == of_files("photos/cat/1.png", "photos/dog/2.png")
    assert there == of_files("cat/1.png", "dog/2.png")
    assert there != of_files("cat/1.png", "dog/3.png")
    assert there != of_files("dog/2.png", "cat/1.png")


def fewer(configuration: Configuration) -> Examples:
    """Two steps an epoch, where all of them make seven."""
    return choose_examples(configuration, small_digits(train=40))


def test_a_run_never_resumes_on_other_data_and_its_record_says_which(tmp_path: Path) -> None:
    job, note = Job(small(), tmp_path), tmp_path / "fingerprint.json"
    train(job, stop=StopAfter(5))
    with pytest.raises(provenance.OtherDataError, match="holds a run of other data"):
        train(job, load=fewer)
    *_, finished = train(job)
    (*_, without), (*_, other) = train(Job(small())), train(Job(small(epochs=1)), load=fewer)
    assert finished.kind == "finished"
    assert finished.value.data == without.value.data
    assert (finished.value.data["train"], finished.value.data["test"]) == (200, 100)
    assert finished.value.data["fingerprint"] != other.value.data["fingerprint"]
    note.write_text("[]")
    with pytest.raises(ValueError, match="fingerprint"):
        train(job)


def test_other_data_are_refused_by_name(tmp_path: Path) -> None:
    provenance.note_data(tmp_path, "27d1")
    values = {"configuration": {"data": "emb.npz"}, "noise_rate": 0, "curve": {}, "seconds": 1}
    text = json.dumps({"name": "run", "versions": {}, **values})
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(provenance.OtherDataError, match=r"it is of emb\.npz, whose labels"):
        provenance.refuse_other_data(tmp_path, lambda: "0a5c")
    audit = provenance.other_data(tmp_path, "pets.npz", "an audit")
    assert "holds an audit of other data: it is of pets.npz" in str(audit)
    assert "--fresh, which keeps the decisions of a review" in str(audit)


def test_a_description_says_what_the_network_is_fed(tmp_path: Path) -> None:
    dataset = small_digits()
    plain = provenance.describe(small(), dataset)
    assert plain.network == small().network
    assert plain.input_shape == (1, 8, 8)
    assert plain.class_names == dataset.class_names
    assert (plain.mean, plain.std, plain.crop) == (dataset.mean, dataset.std, 0)
    cropped = provenance.describe(small(augmentation="resized-crop:6"), dataset)
    assert cropped == replace(plain, input_shape=(1, 6, 6), crop=6)
    for description in (plain, cropped):
        provenance.write_description(tmp_path, description)
        assert provenance.read_description(tmp_path) == description


def test_a_missing_or_damaged_description_is_one_sentence_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"it has no model\.json"):
        provenance.read_description(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nowhere .* there is no such folder"):
        provenance.read_description(tmp_path / "nowhere")
    path = tmp_path / "model.json"
    provenance.write_description(tmp_path, provenance.describe(small(), small_digits()))
    whole = json.loads(path.read_text())
    contents = [b"", b"{", b"[]", b"3", b"{}", b"\xff", b"[" * 100_000]
    for name in whole:
        for value in (None, 1.5, "text", [], [None], {}, ["a"], [[1]], [-1, 8, 8], True):
            if value != whole[name] and (name, value) not in (
                ("network", "text"),
                ("label", "text"),
                ("columns", {}),
                ("class_names", ["a"]),
                ("text_labels", True),
            ):
                contents.append(json.dumps(whole | {name: value}).encode())
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.json: not a description") as refusal:
            provenance.read_description(tmp_path)
        assert len(str(refusal.value)) < 300 + len(str(path)), content


NETWORKS = """
from torch.nn import Conv2d, Flatten, Linear, Sequential

fits = lambda num_classes: Sequential(Flatten(), Linear(64, num_classes))
more = lambda num_classes: fits(num_classes + 1)
colour = lambda num_classes: Conv2d(3, num_classes, 8)

class Pair(Flatten):
    __init__ = lambda self, num_classes: super().__init__()
    forward = lambda self, images: (images, images)
"""


def test_a_network_of_ones_own_that_does_not_fit_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(NETWORKS)
    monkeypatch.syspath_prepend(tmp_path)
    for name, got in (("more", r"got \(N, 11\)"), ("Pair", "got tuple"), ("colour", "3 channels")):
        with pytest.raises(ValueError, match=rf"^network: .*mine:{name} .*\(N, 10\).*{got}"):
            check_network(load_digits(), Configuration("digits", network=f"mine:{name}"))
    check_network(load_digits(), Configuration("digits", network="mine:fits"))
