"""The WebVision experiment from file lists to both validation sets, on a small tree of JPEGs."""

import json
from pathlib import Path

import pytest
from trained import succeed
from webvision_tree import add_imagenet, make_tree

from labelproof.training.record import read_record


@pytest.mark.slow
def test_an_epoch_of_the_papers_setting(tmp_path: Path) -> None:
    make_tree(tmp_path / "webvision", num_classes=50, queries=1, photos=1, validation=5)
    imagenet = tmp_path / "webvision" / "imagenet" / "val"
    add_imagenet(imagenet, images=6)
    for number in range(5, 50):
        (imagenet / f"n{90_000_000 + number}").mkdir()
    run = tmp_path / "run"
    paper = ["--data", "webvision", "--preset", "paper", "--loss", "CE+SR", "--epochs", "1"]
    paper += ["--network", "mlp(hidden=8,depth=1)"]  # the paper's takes a second for each image
    root = ["--data-root", tmp_path]
    succeed("train", *paper, *root, "--output", run, "--workers", "0", "--device", "cpu")
    record = read_record(run)
    assert record is not None
    settings = record.configuration
    assert settings["batch_size"] == 512
    assert settings["augmentation"] == "resized-crop:224,flip,jitter:0.4:0.4:0.4:0.2"
    assert settings["nesterov"]
    assert record.curve["learning_rate"] == pytest.approx([0.4])
    assert record.curve["weight"] == pytest.approx([2])
    assert len(record.curve["test_accuracy"]) == 1
    assert "wrong_fitted" not in record.curve  # no one knows which of the web's labels are wrong

    for split, images in (("test", 5), ("imagenet", 6)):
        measured = succeed("evaluate", run, *root, "--split", split, "--format", "json")
        found = json.loads(measured.stdout)
        assert found["n"] == images, found
