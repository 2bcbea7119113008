import json
from pathlib import Path

import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from labelproof.models.text import make_network
from labelproof.training.configuration import Configuration
from labelproof.training.export import KEY, export_run
from labelproof.training.provenance import Description
from labelproof.training.trained_network import TrainedNetwork

SHAPES = {"cnn4(width=4)": (1, 8, 8), "cnn8(width=4)": (3, 16, 16)}


def saved_run(network: nn.Module, text: str, shape: tuple[int, ...]) -> TrainedNetwork:
    channels = shape[0]
    description = Description(
        text, shape, ("dog", "Käse", "a,b"), (0.3, 0.5, 0.6)[:channels], (0.2, 0.3, 0.1)[:channels]
    )
    device = torch.device("cpu")
    configuration = Configuration("digits", network=text)
    return TrainedNetwork(Path("run"), configuration, description, network.eval(), None, 1, device)


def made(text: str) -> TrainedNetwork:
    generator = torch.Generator().manual_seed(1)
    network = make_network(text, num_classes=3, input_shape=SHAPES[text], generator=generator)
    for module in network.modules():  # not the statistics that a network begins with
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            module.running_mean.normal_(generator=generator)
    return saved_run(network, text, SHAPES[text])


def pixels(count: int, shape: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(256, (count, *shape), dtype=torch.uint8, generator=generator)


def logits(run: TrainedNetwork, images: Tensor) -> Tensor:
    return torch.cat(list(run.logits(images)))


def test_onnx_runtime_computes_the_same_for_any_number_of_images(tmp_path: Path) -> None:
    text = "cnn8(width=4)"
    run, path = made(text), tmp_path / "model.onnx"
    export_run(run, path, format="onnx")
    onnx.checker.check_model(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for count in (1, 2, 7):
        images = pixels(count, SHAPES[text])
        (found,) = session.run(["logits"], {"images": images.numpy()})
        torch.testing.assert_close(
            torch.from_numpy(found), logits(run, images), rtol=1e-4, atol=1e-4
        )
    notes = json.loads(session.get_modelmeta().custom_metadata_map[KEY])
    assert notes["class_names"] == ["dog", "Käse", "a,b"]
    assert notes["input_shape"] == list(SHAPES[text])
    # Without crops there is no short side to resize to: the input is covered.
    assert (notes["crop"], notes["resize_short_side"]) == (0, None)
    assert notes["colours"] == "RGB"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


def test_torch_computes_the_same_for_any_number_of_images(tmp_path: Path) -> None:
    text = "cnn4(width=4)"
    run, path = made(text), tmp_path / "model.pt2"
    export_run(run, path, format="torch-export")
    extra = {KEY: ""}
    loaded = torch.export.load(path, extra_files=extra).module()
    for count in (1, 2, 7):
        images = pixels(count, SHAPES[text])
        torch.testing.assert_close(loaded(images), logits(run, images), rtol=1e-4, atol=1e-4)
    notes = json.loads(extra[KEY])
    assert notes["class_names"] == ["dog", "Käse", "a,b"]
    assert notes["colours"] == "L"


class Branching(nn.Module):
    """Decides by the values of its input, which no graph can hold."""

    def forward(self, inputs: Tensor) -> Tensor:
        flat = inputs.flatten(1)
        return flat[:, :3] if flat.sum() > 0 else flat[:, 3:6]


def test_a_network_that_cannot_be_exported_is_one_line_and_no_file(tmp_path: Path) -> None:
    run = saved_run(Branching(), "mlp", (1, 4, 4))
    with pytest.raises(ValueError, match="mlp cannot be exported as torch-export: ") as caught:
        export_run(run, tmp_path / "model.pt2", format="torch-export")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
