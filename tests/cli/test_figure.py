from pathlib import Path

import numpy as np
import pytest
from made_records import RECORDS
from PIL import Image
from small_runs import small, train
from trained import refusal, succeed

from labelproof.data import load_digits
from labelproof.experiments.figures import embed, sample_test_images, see_features
from labelproof.training import Job
from labelproof.verbs.run import load_run


def test_a_figure_is_drawn_from_the_committed_records(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sparse.png"
    mnist = ("--dataset", "mnist", "--records", RECORDS / "mnist")
    assert str(path) in succeed("figure", "sparse", *mnist, "--output", path).stderr
    with Image.open(path) as image:
        assert image.width > 1000


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs on digits, and one that has just begun."""
    folder = tmp_path_factory.mktemp("runs")
    for loss in ("ce+sr", "ce"):
        train(Job(small(loss=loss, epochs=1), folder / loss))
    (folder / "begun").mkdir()
    return folder


def test_features_are_drawn_from_kept_runs(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "features.svg"
    arguments = ("figure", "tsne", "--runs", kept, "--output", path, "--device", "cpu")
    succeed(*arguments, "--images", "40")
    first = path.read_bytes()
    assert first.startswith(b"<?xml")
    succeed(*arguments, "--images", "40")
    assert path.read_bytes() == first
    refusal(*arguments, "--dataset", "mnist")


def test_features_are_what_the_last_layer_sees_of_the_same_images(kept: Path) -> None:
    digits = load_digits()
    chosen = sample_test_images(digits, 25)
    assert len(chosen) == 25
    assert np.all(np.diff(chosen) > 0)
    np.testing.assert_array_equal(chosen, sample_test_images(digits, 25))
    assert len(sample_test_images(digits, 10_000)) == len(digits.test)
    run = load_run(kept / "ce")
    features = see_features(run, digits, chosen)
    weights = run.network.state_dict()
    logits = features @ weights["head.weight"].numpy().T + weights["head.bias"].numpy()
    expected = run.probabilities(digits.test.array[chosen]).argmax(dim=1).numpy()
    np.testing.assert_array_equal(logits.argmax(axis=1), expected)
    made = embed(run, digits, chosen)
    assert made.points.shape == (25, 2)
    assert (made.method, made.noise) == ("ce", "symmetric:0.4")
    np.testing.assert_array_equal(made.labels, digits.test.labels[chosen])
