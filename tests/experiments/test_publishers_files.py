"""Experiments on the publishers' own files: human labels, and WebVision as a few JPEGs."""

import json
from pathlib import Path

import numpy as np
import pytest
from cifar_files import cifar10_records, write_binary
from small_runs import StopAfter
from trained import labelproof, succeed
from webvision_tree import add_imagenet, make_tree

from labelproof.cli.console import TIME_IS_UP
from labelproof.training.provenance import OtherDataError
from labelproof.training.record import read_record


def write_labels(root: Path, shift: int) -> None:
    clean = np.concatenate([cifar10_records(8)[f"data_batch_{n}.bin"][:, 0] for n in range(1, 6)])
    (root / "cifar-n").mkdir(parents=True, exist_ok=True)
    worse = np.where(np.arange(len(clean)) % 2, clean, (clean + shift) % 10)
    np.savez(root / "cifar-n" / "cifar10n.npz", clean_label=clean, worse_label=worse)


def test_human_labels_are_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "data"
    write_binary(root / "cifar-10-batches-bin", cifar10_records(8))

    def bench(*extra: str):
        return labelproof(
            *("bench", "human", "--dataset", "cifar10", "--methods", "ELR", "--columns", "worse"),
            *("--device", "cpu", "--data-root", root, "--records", tmp_path / "records"),
            *("--runs", tmp_path / "runs", *extra),
        )

    missing = bench("--epochs", "1")
    assert isinstance(missing.exception, ValueError)
    assert "the folder cifar-n of the data root" in str(missing.exception)
    write_labels(root, 1)
    options = ("--data", "cifar10", "--noise", "human:worse", "--data-root", root, "--dry-run")
    assert labelproof("train", *options).exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr("labelproof.cli.bench.StopRequest", lambda _: StopAfter(3))
        # The second time it is resumed on the same labels.
        for _ in range(2):
            begun = bench("--epochs", "9", "--minutes", "1")
            assert begun.exit_code == TIME_IS_UP, begun.output
    write_labels(root, 3)
    assert isinstance(bench("--epochs", "9").exception, OtherDataError)
    done = bench("--epochs", "1")
    assert done.exit_code == 0, done.output
    (path,) = (tmp_path / "records").glob("cifar10/*.json")
    record = json.loads(path.read_text())
    assert record["configuration"]["noise"] == "human:worse"
    assert record["configuration"]["algorithm"] == "elr(beta=0.7,lambda=3)"
    assert record["noise_rate"] == pytest.approx(0.5)


@pytest.mark.slow
def test_an_epoch_of_the_papers_setting(tmp_path: Path) -> None:
    make_tree(tmp_path / "webvision", num_classes=50, queries=1, photos=2, validation=5)
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
