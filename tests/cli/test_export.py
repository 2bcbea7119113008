from pathlib import Path

import pytest
import torch
from trained import labelproof, train_digits


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert train_digits(folder, epochs=1).exit_code == 0
    return folder


def test_the_file_is_in_the_runs_folder_and_its_inputs_are_said(run: Path) -> None:
    result = labelproof("export", run, "--format", "torch-export")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        f"{run / 'model.pt2'}: takes images, uint8 (N, 1, 8, 8), and gives logits of 10 classes\n"
    )
    images = torch.zeros(3, 1, 8, 8, dtype=torch.uint8)
    assert torch.export.load(run / "model.pt2").module()(images).shape == (3, 10)


def test_onnx_that_is_not_installed_says_how_to_get_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = labelproof("export", run, "--output", tmp_path / "model.onnx")
    assert isinstance(result.exception, ImportError)
    assert "pip install 'labelproof[onnx]'" in str(result.exception)


def test_mistakes_are_explained(run: Path, tmp_path: Path) -> None:
    result = labelproof("export", run, "--format", "onx")
    assert "did you mean 'onnx'" in str(result.exception)
    assert "is not the folder of a run" in str(labelproof("export", tmp_path).exception)


def test_a_folder_is_no_file_to_write(run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    for output in (f"{tmp_path}/there", f"{tmp_path}/new/"):
        refused = str(labelproof("export", run, "--output", output).exception)
        assert "--output: expected a file, got the folder" in refused
        assert refused.endswith("/model.onnx")
    inside = labelproof("export", run, "--output", tmp_path / "file" / "model.onnx")
    assert f"{tmp_path / 'file'} is a file" in str(inside.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "there"]
