"""Predictions of files, folders, arrays and tables, and the network as a file."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_images import write_images
from PIL import Image
from trained import labelproof, labelproof_to_its_end, refusal, succeed
from typer.testing import Result

from labelproof.cli.main import show_warnings
from labelproof.data import load_digits
from labelproof.data.image_folder import load_folder
from labelproof.data.notices import DataWarning
from labelproof.verbs.predictions import read_samples
from labelproof.verbs.run import load_run


def rows(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_arrays_are_predicted_as_the_library_does(digits_run: Path, tmp_path: Path) -> None:
    images = load_digits().test.array[:20]
    expected = load_run(digits_run).probabilities(images)
    np.save(tmp_path / "bytes.npy", images[:, 0])
    np.savez(tmp_path / "numbers.npz", x=images.transpose(0, 2, 3, 1) / 255, other=np.zeros(3))
    for name in ("bytes.npy", "numbers.npz"):
        found = rows(succeed("predict", digits_run, tmp_path / name, "--all", "--device", "cpu"))
        assert [row["index"] for row in found] == [str(index) for index in range(20)]
        assert {row["path"] for row in found} == {str(tmp_path / name)}
        got = [[float(row[f"p({digit})"]) for digit in range(10)] for row in found]
        np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
        assert [int(row["label"]) for row in found] == expected.argmax(dim=1).tolist()
        best = [float(row["probability"]) for row in found]
        assert best == pytest.approx(expected.amax(dim=1).tolist(), abs=1e-5)


def test_files_and_folders_are_predicted_in_order(digits_run: Path, tmp_path: Path) -> None:
    images = load_digits().test.array[:3, 0]
    places = [tmp_path / "deep" / "er" / "b.png", tmp_path / "deep" / "a.png", tmp_path / "one.png"]
    for place, image in zip(places, images, strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        # Colour, which the run's images are not: the digit is the same.
        Image.fromarray(image).convert("RGB").save(place)
    found = rows(succeed("predict", digits_run, places[2], tmp_path / "deep"))
    assert [row["path"] for row in found] == [str(places[index]) for index in (2, 1, 0)]
    assert list(found[0]) == ["path", "label", "probability"]
    expected = load_run(digits_run).probabilities(images[[2, 1, 0]][:, np.newaxis]).argmax(dim=1)
    assert [int(row["label"]) for row in found] == expected.tolist()


def test_unreadable_images_are_named_left_out_and_counted(digits_run: Path, tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "c.png"], mode="L")
    (tmp_path / "b.png").touch()
    result = labelproof("predict", digits_run, tmp_path)
    assert result.exit_code == 1
    assert [Path(row["path"]).name for row in rows(result)] == ["a.png", "c.png"]
    assert result.stderr == f"warning: {tmp_path / 'b.png'}: the file is empty\n"
    succeed("predict", digits_run, tmp_path, "--skip-unreadable")


def test_the_table_goes_to_a_file_or_to_standard_output(
    digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path, ["a.png"], mode="L")
    monkeypatch.chdir(tmp_path)
    shown = succeed("predict", digits_run, "a.png", "--output", "-")
    assert [row["path"] for row in rows(shown)] == ["a.png"]
    for output in ("deep/predictions.csv", "./-"):
        assert succeed("predict", digits_run, "a.png", "--output", output).stdout == ""
        assert Path(output).read_text() == shown.stdout
    for output in ("predictions.xlsx", "predictions.parquet"):
        refused = refusal("predict", digits_run, "a.png", "--output", output)
        assert "a file such as predictions.csv" in refused
    refused = refusal("export", digits_run, "--output", "-")
    assert refused.startswith("--output: expected a file such as model.onnx, got -")


def test_files_that_are_not_images_are_told_as_fit_does(
    digits_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_images(tmp_path, ["a/1.gif", "a/2.tif", "b/1.png"])
    for name in ("a/3.heic", "b/4.HEIC", "b/IM0001", "b/._3.HEIC"):
        (tmp_path / name).touch()
    with pytest.warns(DataWarning, match="3 files left out") as caught:
        load_folder(tmp_path)
    with show_warnings():
        read_samples(load_run(digits_run), tmp_path)
    assert capsys.readouterr().err.splitlines() == [f"warning: {caught[0].message}"]


def test_one_image_is_not_taken_for_many(digits_run: Path, tmp_path: Path) -> None:
    run = load_run(digits_run)
    path, grey, colour = tmp_path / "one.npy", (1, 8, 8), (3, 32, 32)
    for inputs, shape, reason in (
        (colour, (32, 32, 3), "which would be 32 grey images"),
        (colour, (40, 60, 1), "which would be 40 grey images"),
        (colour, (3, 32, 32), "which would be 3 grey images"),
        (grey, (8, 8, 3), "which would be 8 grey images"),
        (grey, (8, 8), "a single image"),
    ):
        run = replace(run, description=replace(run.description, input_shape=inputs))
        np.save(path, np.zeros(shape, np.uint8))
        with pytest.raises(ValueError, match="array") as caught:
            read_samples(run, path)
        for part in (str(path), f"got {shape}", reason, "a single image is given as array[None]"):
            assert part in str(caught.value)
        np.save(path, np.zeros((1, *shape), np.uint8))
        assert len(read_samples(run, path)[0]) == 1


def test_a_table_names_the_images(digits_run: Path, tmp_path: Path) -> None:
    scans = tmp_path / "scans"
    write_images(scans, ["a.png", "b.png", "c.png"], mode="L", size=(8, 8))
    table = scans / "new.csv"
    table.write_text("Schl\u00fcssel,Bild\nk7,b.png\nk8,gone.png\nk9,a.png\n", encoding="utf-8")
    ended = labelproof_to_its_end("predict", digits_run, table, "--id", "schl\u00fcssel")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"warning: {scans}/gone.png: ")
    header, first, second = (line.split(",") for line in ended.stdout.splitlines())
    assert header == ["path", "row", "schl\u00fcssel", "label", "probability"]
    assert first[:3] == [f"{scans}/b.png", "line 2", "k7"]
    assert second[:3] == [f"{scans}/a.png", "line 4", "k9"]
    (alone,) = rows(succeed("predict", digits_run, scans / "b.png"))
    assert [alone["label"], alone["probability"]] == first[3:]
    # Beside a folder, which has no columns.
    both = rows(succeed("predict", digits_run, table, scans, "--skip-unreadable"))
    assert [row["row"] for row in both] == ["line 2", "line 4", "", "", ""]
    assert "--id: expected" in refusal("predict", digits_run, table, "--id", "Label")


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
