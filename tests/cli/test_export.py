from pathlib import Path

import pytest
import torch
from trained import labelproof, succeed


def test_the_file_is_in_the_runs_folder_and_its_inputs_are_said(digits_run: Path) -> None:
    result = succeed("export", digits_run, "--format", "torch-export")
    assert result.stdout == (
        f"{digits_run / 'model.pt2'}: takes images, uint8 (N, 1, 8, 8), and gives logits of 10 "
        "classes\n"
        "Images of another size, as 'predict' takes them: in grey, resized until they cover 8 x 8 "
        "(bilinear, antialiased), the middle 8 x 8 cut out\n"
    )
    images = torch.zeros(3, 1, 8, 8, dtype=torch.uint8)
    assert torch.export.load(digits_run / "model.pt2").module()(images).shape == (3, 10)


def test_onnx_that_is_not_installed_says_how_to_get_it(
    digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = labelproof("export", digits_run, "--output", tmp_path / "model.onnx")
    assert isinstance(result.exception, ImportError)
    assert "pip install 'labelproof[onnx]'" in str(result.exception)
