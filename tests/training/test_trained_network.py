import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import small, small_digits, train

from labelproof.training import Job
from labelproof.training.run_folder import check_removable, remove_run
from labelproof.training.trained_network import load_network


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    train(Job(small(average=0.5), folder), checkpoint_seconds=1e9)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_predictions_are_those_the_training_kept(finished: Path) -> None:
    run = load_network(finished)
    kept = np.load(finished / "predictions.npz")
    logits = torch.cat(list(run.logits(small_digits().test.array)))
    torch.testing.assert_close(logits, torch.from_numpy(kept["logits"]).float(), rtol=0, atol=0.01)
    assert run.record is not None
    assert run.epochs == 3
    assert run.configuration.data == "digits"
    assert not run.network.training


def test_probabilities_do_not_depend_on_batches_or_containers(finished: Path) -> None:
    run = load_network(str(finished))
    images = small_digits().test.array[:10]
    expected = run.probabilities(images)
    assert expected.shape == (10, 10)
    torch.testing.assert_close(expected.sum(dim=1), torch.ones(10))
    torch.testing.assert_close(run.probabilities(torch.from_numpy(images)), expected)
    torch.testing.assert_close(run.probabilities(list(images), batch_size=3), expected)
    torch.testing.assert_close(run.fitted_probabilities(images), expected)
    assert run.probabilities(images[:0]).shape == (0, 10)


def test_images_of_another_shape_or_type_are_refused(finished: Path) -> None:
    run = load_network(finished)
    shapes = [(1, 1, 9, 8), (1, 3, 8, 8), (1, 8, 8)]
    arrays = [np.zeros(shape, np.uint8) for shape in shapes]
    for images in (*arrays, np.zeros((1, 1, 8, 8)), torch.zeros(1, 1, 8, 8)):
        with pytest.raises(ValueError, match="images: expected"):
            run.probabilities(images)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="image: expected"):
        run.fit_image(np.zeros((3, 8, 8), np.uint8))


def test_broken_and_missing_weights_are_refused_with_the_reason(copy: Path) -> None:
    for weights in copy.glob("checkpoint/*.safetensors"):
        weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"safetensors: not a whole.*train it anew with --fresh"):
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
    assert sorted(path.name for path in copy.iterdir()) == [".lock", "notes.txt"]
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
