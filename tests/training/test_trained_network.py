"""A trained network, and the files it is exported to."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from small_runs import names, small, small_digits, train
from torch import Tensor, nn

from labelproof.models.text import make_network
from labelproof.training import Job
from labelproof.training.configuration import Configuration
from labelproof.training.export import KEY, export_run
from labelproof.training.provenance import Description
from labelproof.training.run_folder import check_removable, remove_run
from labelproof.training.trained_network import TrainedNetwork, load_network


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    train(Job(small(average=0.5), folder), checkpoint_seconds=1e9)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_predictions_are_those_of_training_in_any_batches_and_containers(finished: Path) -> None:
    run, images = load_network(str(finished)), small_digits().test.array
    kept = torch.from_numpy(np.load(finished / "predictions.npz")["logits"]).float()
    torch.testing.assert_close(torch.cat(list(run.logits(images))), kept, rtol=0, atol=0.01)
    assert run.record is not None
    assert (run.epochs, run.configuration.data, run.network.training) == (3, "digits", False)
    expected = run.probabilities(images)
    torch.testing.assert_close(expected, kept.softmax(dim=1), rtol=0, atol=0.01)
    torch.testing.assert_close(run.probabilities(torch.from_numpy(images)), expected)
    torch.testing.assert_close(run.probabilities(list(images), batch_size=3), expected)
    torch.testing.assert_close(run.fitted_probabilities(images), expected)
    assert run.probabilities(images[:0]).shape == (0, 10)
    # Colours become grey, and larger images smaller.
    coloured = images.repeat(3, axis=1).repeat(2, axis=2).repeat(2, axis=3)
    fitted = np.stack([run.fit_image(image) for image in coloured])
    torch.testing.assert_close(run.probabilities(coloured), run.fitted_probabilities(fitted))
    # What is not an image is refused.
    arrays = [np.zeros(shape, np.uint8) for shape in ((1, 2, 8, 8), (1, 8, 8))]
    for images in (*arrays, np.zeros((1, 1, 8, 8)), torch.zeros(1, 1, 8, 8)):
        with pytest.raises(ValueError, match="images: expected"):
            run.probabilities(images)


def test_broken_and_missing_weights_are_refused_with_the_reason(copy: Path) -> None:
    for weights in copy.glob("checkpoint/*.safetensors"):
        weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"safetensors: not a valid.*train it anew with --fresh"):
        load_network(copy)
    shutil.rmtree(copy / "checkpoint")
    with pytest.raises(FileNotFoundError, match="no whole checkpoint to load weights from; resume"):
        load_network(copy)


def test_weights_of_another_network_are_refused_in_one_line(copy: Path) -> None:
    description = json.loads((copy / "model.json").read_text())
    for network in ("cnn4", "mlp"):
        (copy / "model.json").write_text(json.dumps({**description, "network": network}))
        with pytest.raises(ValueError, match=f"do not fit the network {network}: ") as caught:
            load_network(copy)
        assert "\n" not in str(caught.value)


def test_only_what_a_run_wrote_is_removed(copy: Path) -> None:
    (copy / "notes.txt").touch()
    remove_run(copy)
    assert names(copy) == [".lock", "notes.txt"]
    with pytest.raises(ValueError, match="nothing in it is removed"):
        remove_run(copy)
    assert (copy / "notes.txt").exists()
    check_removable(copy / "nowhere")
    with pytest.raises(ValueError, match="nothing in it is removed"):
        check_removable(copy / "notes.txt")


def test_weights_of_an_earlier_checkpoint_are_not_passed_off_as_the_last(copy: Path) -> None:
    (first,) = (copy / "checkpoint").iterdir()
    last = first.with_name("00099-0000000.safetensors")
    last.write_bytes(first.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=f"{last.name}.* those of the earlier .*{first.stem}"):
        load_network(copy)


SHAPES = {"cnn4(width=4)": (1, 8, 8), "cnn8(width=4)": (3, 16, 16)}


def saved_run(text: str, network: nn.Module | None = None) -> TrainedNetwork:
    shape, generator = SHAPES[text], torch.Generator().manual_seed(1)
    sizes = {"num_classes": 3, "input_shape": shape}
    network = network or make_network(text, **sizes, generator=generator)
    for module in network.modules():  # not the statistics that a network begins with
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(generator=generator)
    mean, std = (each[: shape[0]] for each in ((0.3, 0.5, 0.6), (0.2, 0.3, 0.1)))
    description = Description(text, shape, ("dog", "Käse", "a,b"), mean, std)
    how = (Configuration("digits", network=text), description, network.eval(), None, 1)
    return TrainedNetwork(Path("run"), *how, torch.device("cpu"))


def assert_same(run: TrainedNetwork, exported: Callable[[Tensor], Tensor], notes: str) -> None:
    """For any number of images, and in what is noted."""
    for count in (1, 2, 7):
        generator = torch.Generator().manual_seed(count)
        shape = (count, *run.description.input_shape)
        images = torch.randint(256, shape, dtype=torch.uint8, generator=generator)
        expected = torch.cat(list(run.logits(images)))
        torch.testing.assert_close(exported(images), expected, rtol=1e-4, atol=1e-4)
    noted = json.loads(notes)
    assert noted["class_names"] == ["dog", "Käse", "a,b"]
    assert noted["input_shape"] == [*run.description.input_shape]
    assert noted["colours"] == ("RGB" if shape[1] == 3 else "L")
    # Without crops there is no short side to resize to: the input is covered.
    assert (noted["crop"], noted["resize_short_side"]) == (0, None)


def test_onnx_runtime_and_torch_compute_the_same(tmp_path: Path) -> None:
    run, path = saved_run("cnn8(width=4)"), tmp_path / "model.onnx"
    export_run(run, path, format="onnx")
    onnx.checker.check_model(str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert_same(
        run,
        lambda each: torch.from_numpy(session.run(["logits"], {"images": each.numpy()})[0]),
        session.get_modelmeta().custom_metadata_map[KEY],
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]
    run, path, extra = saved_run("cnn4(width=4)"), tmp_path / "model.pt2", {KEY: ""}
    export_run(run, path, format="torch-export")
    loaded = torch.export.load(path, extra_files=extra).module()
    assert_same(run, loaded, extra[KEY])


class Branching(nn.Module):
    """Decides by the values of its input, which no graph can hold."""

    def forward(self, inputs: Tensor) -> Tensor:
        flat = inputs.flatten(1)
        return flat[:, :3] if flat.sum() > 0 else flat[:, 3:6]


def test_a_network_that_cannot_be_exported_is_one_line_and_no_file(tmp_path: Path) -> None:
    run = saved_run("cnn4(width=4)", Branching())
    with pytest.raises(ValueError, match="cannot be exported as torch-export: ") as caught:
        export_run(run, tmp_path / "model.pt2", format="torch-export")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
