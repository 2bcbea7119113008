"""The WebVision experiment from file lists to both validation sets, on a small tree of JPEGs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from webvision_tree import add_imagenet, make_tree

from labelproof.cli.commands import app
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
    root = ["--data-root", str(tmp_path)]
    trained = CliRunner().invoke(
        app, ["train", *paper, *root, "--output", str(run), "--workers", "0", "--device", "cpu"]
    )
    assert trained.exit_code == 0, trained.output
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
        measured = CliRunner().invoke(
            app, ["evaluate", str(run), *root, "--split", split, "--format", "json"]
        )
        assert measured.exit_code == 0, measured.output
        found = json.loads(measured.stdout)
        assert found["n"] == images, found
