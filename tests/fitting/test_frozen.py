"""A network that keeps its weights: only its last layer is trained; the run is like any other."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import labelproof
from labelproof.data import load_digits
from labelproof.data.dataset import Dataset, Split
from labelproof.models.text import make_network

NETWORK = "mlp(depth=1,hidden=64)"


def digits(part: slice) -> Dataset:
    whole = load_digits()
    train = Split(whole.train.array[part], whole.train.labels[part])
    return replace(whole, splits={"train": train, "test": whole.test})


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of a network that was trained on some digits."""
    folder = tmp_path_factory.mktemp("other") / "run"
    labelproof.fit(
        digits(slice(700)), network=NETWORK, epochs=8, loss="ce", learning_rate=0.1, device="cpu",
        audit=False, output=folder,
    )  # fmt: skip
    (file,) = sorted((folder / "checkpoint").glob("*.safetensors"))[-1:]
    return file


def test_the_last_layer_alone_is_trained(checkpoint: Path, tmp_path: Path) -> None:
    data, said = digits(slice(700, None)), []
    settings: dict[str, Any] = {"network": NETWORK, "weights": checkpoint, "noise": "symmetric:0.4"}
    settings |= {"device": "cpu", "output": tmp_path / "run"}
    labelproof.fit(data, **settings, progress=said.append)
    run = labelproof.fit(data, **settings, progress=said.append)
    assert sum("only its last layer is trained" in str(each) for each in said) == 2
    assert any("not trained again" in str(each) for each in said)
    assert run.record.curve["test_accuracy"][-1] > 90  # by labels of which 40% are wrong
    assert run.evaluate().accuracy == pytest.approx(run.record.curve["test_accuracy"][-1], abs=0.3)
    body = {name: value for name, value in run.network.state_dict().items() if "body" in name}
    before = load_file(checkpoint)
    assert body
    assert all(torch.equal(value, before[f"weights.{name}"]) for name, value in body.items())
    assert (tmp_path / "run" / "audit" / "report.html").exists()
    settings["weights"] = None  # without those it is another run
    with pytest.raises(ValueError, match="fresh"):
        labelproof.fit(data, **settings)


NORMALISED = """
from torch import nn


def make(num_classes):
    layers = nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, num_classes), nn.LogSoftmax(dim=1)
    return nn.Sequential(nn.Flatten(), *layers)
"""


def test_more_may_follow_the_last_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "normalised.py").write_text(NORMALISED)
    monkeypatch.syspath_prepend(tmp_path)
    network = make_network("normalised:make", num_classes=10, input_shape=(1, 8, 8))
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    run = labelproof.fit(
        digits(slice(700)), network="normalised:make", weights=tmp_path / "weights.safetensors",
        device="cpu", audit=False, output=tmp_path / "run",
    )  # fmt: skip
    learned = run.record.curve["test_accuracy"][-1]
    assert learned > 80
    assert run.evaluate().accuracy == pytest.approx(learned, abs=0.3)


def test_weights_that_do_not_fit_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.safetensors").write_bytes(checkpoint.read_bytes()[:-100])
    save_file({"other": torch.ones(2)}, tmp_path / "other.safetensors")
    data, table = digits(slice(100)), (np.arange(80.0).reshape(40, 2), ["a", "b"] * 20)
    for given, network, weights, said in (
        (data, NETWORK, tmp_path / "damaged.safetensors", "safetensors"),
        (data, NETWORK, tmp_path / "other.safetensors", "lacks"),
        (data, NETWORK, tmp_path / "gone.safetensors", "gone"),
        (
            data,
            "mlp(depth=1,hidden=32)",
            checkpoint,
            r"of shape \(32, 64\), .* of shape \(64, 64\)",
        ),
        (data, None, checkpoint, "with --network"),
        (table, "mlp", checkpoint, "on images"),
    ):
        with pytest.raises(ValueError, match=f"weights: .*{said}"):
            labelproof.fit(given, network=network, weights=weights, device="cpu", audit=False)


def test_a_pretrained_network_is_frozen_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    def make(_name: str, *, pretrained: bool, num_classes: int) -> torch.nn.Module:
        small = make_network("cnn4(width=2)", num_classes=num_classes, input_shape=(3, 224, 224))
        small.register_forward_hook(lambda _, inputs, _outputs: seen.append(inputs[0].shape))
        return small

    timm = SimpleNamespace(list_models=lambda: ["any"], create_model=make)
    monkeypatch.setitem(sys.modules, "timm", timm)
    pixels = np.random.default_rng(0).integers(0, 256, (40, 3, 12, 12), dtype=np.uint8)
    run = labelproof.fit((pixels, ["a", "b"] * 20), network="timm/any", device="cpu", audit=False)
    assert sum(shape[0] for shape in seen) == 40  # each image once, at the size it was made for
    assert {shape[1:] for shape in seen} == {(3, 224, 224)}
    assert run.configuration.augmentation == "resized-crop:224"
    assert run.metrics.shape[0] == run.configuration.epochs
