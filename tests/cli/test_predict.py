import csv
import io
from pathlib import Path

import numpy as np
import pytest
from made_images import write_images
from PIL import Image
from trained import labelproof, train_digits
from typer.testing import Result

from labelproof.data import load_digits
from labelproof.verbs.run import load_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "digits"
    assert train_digits(folder, epochs=2).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def colour_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on colour images of several sizes, which crops bring to one."""
    folder = tmp_path_factory.mktemp("colour")
    names = [f"{name}/{number}.png" for name in ("cat", "dog") for number in range(4)]
    write_images(folder / "pets", names, size=(24, 20))
    result = labelproof(
        *("train", "--data", folder / "pets", "--output", folder / "run", "--epochs", "1"),
        *("--network", "cnn4(width=4)", "--augmentation", "resized-crop:16", "--workers", "0"),
        *("--device", "cpu", "--batch-size", "4"),
    )
    assert result.exit_code == 0, result.output
    return folder / "run"


def rows(result: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_arrays_are_predicted_as_the_library_does(run: Path, tmp_path: Path) -> None:
    images = load_digits().test.array[:20]
    expected = load_run(run).probabilities(images)
    np.save(tmp_path / "bytes.npy", images[:, 0])
    np.savez(tmp_path / "numbers.npz", x=images.transpose(0, 2, 3, 1) / 255, other=np.zeros(3))
    for name in ("bytes.npy", "numbers.npz"):
        result = labelproof("predict", run, tmp_path / name, "--all", "--device", "cpu")
        assert result.exit_code == 0, result.output
        found = rows(result)
        assert [row["index"] for row in found] == [str(index) for index in range(20)]
        assert {row["path"] for row in found} == {str(tmp_path / name)}
        got = [[float(row[f"p({digit})"]) for digit in range(10)] for row in found]
        np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)
        assert [int(row["label"]) for row in found] == expected.argmax(dim=1).tolist()
        best = [float(row["probability"]) for row in found]
        assert best == pytest.approx(expected.amax(dim=1).tolist(), abs=1e-5)


def test_files_and_folders_are_predicted_in_order(run: Path, tmp_path: Path) -> None:
    images = load_digits().test.array[:3, 0]
    places = [tmp_path / "deep" / "er" / "b.png", tmp_path / "deep" / "a.png", tmp_path / "one.png"]
    for place, image in zip(places, images, strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        # Colour, which the run's images are not: the digit is the same.
        Image.fromarray(image).convert("RGB").save(place)
    (tmp_path / "deep" / "notes.txt").touch()
    result = labelproof("predict", run, places[2], tmp_path / "deep")
    found = rows(result)
    assert [row["path"] for row in found] == [str(places[index]) for index in (2, 1, 0)]
    assert list(found[0]) == ["path", "label", "probability"]
    expected = load_run(run).probabilities(images[[2, 1, 0]][:, np.newaxis]).argmax(dim=1)
    assert [int(row["label"]) for row in found] == expected.tolist()


def test_a_run_with_crops_sees_what_its_evaluation_sees(colour_run: Path) -> None:
    pets = colour_run.parent / "pets"
    saved = load_run(colour_run)
    file = pets / "cat" / "0.png"
    pixels = np.asarray(Image.open(file)).transpose(2, 0, 1)
    expected = saved.probabilities(pixels[np.newaxis])
    found = rows(labelproof("predict", colour_run, file, "--all"))
    got = [float(found[0][f"p({name})"]) for name in ("cat", "dog")]
    assert got == pytest.approx(expected[0].tolist(), abs=1e-5)
    evaluated = labelproof("evaluate", colour_run, "--split", "train")
    assert evaluated.exit_code == 0, evaluated.output


def test_unreadable_images_are_named_left_out_and_counted(run: Path, tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "c.png"], mode="L")
    (tmp_path / "b.png").touch()
    result = labelproof("predict", run, tmp_path)
    assert result.exit_code == 1
    assert [Path(row["path"]).name for row in rows(result)] == ["a.png", "c.png"]
    assert result.stderr == f"warning: {tmp_path / 'b.png'}: the file is empty\n"
    assert labelproof("predict", run, tmp_path, "--skip-unreadable").exit_code == 0


def test_the_table_goes_into_a_file(run: Path, tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png"], mode="L")
    output = tmp_path / "deep" / "predictions.csv"
    result = labelproof("predict", run, tmp_path / "a.png", "--output", output)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert output.read_text().splitlines()[0] == "path,label,probability"
    assert len(output.read_text().splitlines()) == 2


def test_a_dash_is_standard_output(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path, ["a.png"], mode="L")
    monkeypatch.chdir(tmp_path)
    result = labelproof("predict", run, "a.png", "--output", "-")
    assert result.exit_code == 0
    assert [row["path"] for row in rows(result)] == ["a.png"]
    labelproof("predict", run, "a.png", "--output", "./-")
    assert (tmp_path / "-").read_text() == result.stdout
    (tmp_path / "-").unlink()
    refused = labelproof("export", run, "--output", "-")
    assert str(refused.exception).startswith("--output: expected a file such as model.onnx, got -")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
