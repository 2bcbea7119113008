import csv
import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from made_images import make_image, write_images
from PIL import Image
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


def test_photos_brought_to_size_by_the_files_own_numbers_are_what_predict_sees(
    tmp_path: Path,
) -> None:
    write_images(
        tmp_path / "pets", [f"{name}/{i}.png" for name in ("cat", "dog") for i in range(8)]
    )
    run, path, photos = tmp_path / "run", tmp_path / "pets.onnx", tmp_path / "photos"
    succeed(
        *("train", "--data", tmp_path / "pets", "--augmentation", "resized-crop:20"),
        *("--network", "mlp(hidden=16,depth=1)", "--epochs", "4", "--device", "cpu"),
        *("--output", run, "--workers", "0"),
    )
    told = succeed("export", run, "--output", path)
    assert told.stdout.splitlines()[1] == (
        "Images of another size, as 'predict' takes them: in RGB, the short side resized to 22 "
        "(bilinear, antialiased), the middle 20 x 20 cut out"
    )
    photos.mkdir()
    for seed, size in enumerate([(61, 43), (37, 201), (23, 22), (17, 9), (640, 427)]):
        make_image(seed, size=size).save(photos / f"{seed}.png")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    notes = json.loads(session.get_modelmeta().custom_metadata_map["labelproof"])
    assert (notes["interpolation"], notes["antialias"]) == ("bilinear", True)
    found = labelproof("predict", run, photos, "--all").stdout.splitlines()

    def odds(pixels: Image.Image) -> list[float]:
        images = np.asarray(pixels).transpose(2, 0, 1)[np.newaxis]
        (logits,) = session.run(["logits"], {"images": images})
        return torch.softmax(torch.from_numpy(np.asarray(logits)), dim=1)[0].tolist()

    squeezed = []
    for row in csv.DictReader(found):
        image = Image.open(row["path"]).convert(notes["colours"])
        crop, short = notes["crop"], notes["resize_short_side"]
        wide, high = (short * side // min(image.size) for side in image.size)
        left, top = (wide - crop) // 2, (high - crop) // 2
        resized = image.resize((wide, high), Image.Resampling.BILINEAR)
        seen = resized.crop((left, top, left + crop, top + crop))
        expected = [float(row[f"p({name})"]) for name in notes["class_names"]]
        # Pillow's short cut for large photos, which predict takes, changes few levels by little.
        assert odds(seen) == pytest.approx(expected, abs=0.01)
        squeezed.append(abs(odds(image.resize((crop, crop)))[0] - expected[0]))
    # Who does it otherwise gets other answers.
    assert max(squeezed) > 0.03


def test_onnx_that_is_not_installed_says_how_to_get_it(
    digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = labelproof("export", digits_run, "--output", tmp_path / "model.onnx")
    assert isinstance(result.exception, ImportError)
    assert "pip install 'labelproof[onnx]'" in str(result.exception)
