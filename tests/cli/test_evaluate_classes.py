"""A set to measure on may lack classes of the run, down to a single one, and not have others."""

import json
from pathlib import Path

import pytest
from made_images import write_images
from trained import labelproof
from typer.testing import Result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three kinds of photos."""
    folder = tmp_path_factory.mktemp("classes")
    names = [f"{kind}/{number}.png" for kind in ("bird", "cat", "dog") for number in range(4)]
    write_images(folder / "photos", names, size=(8, 8))
    result = labelproof(
        *("train", "--data", folder / "photos", "--epochs", "1", "--augmentation", "none"),
        *("--network", "mlp(hidden=4,depth=1)", "--device", "cpu", "--workers", "0"),
        *("--output", folder / "run"),
    )
    assert result.exit_code == 0, result.output
    return folder / "run"


def evaluate(run: Path, data: Path, *arguments: str | Path) -> Result:
    return labelproof("evaluate", run, "--data", data, "--device", "cpu", *arguments)


@pytest.mark.parametrize(
    ("names", "counts", "missing"),
    [
        (["cat/1.png", "cat/2.png", "dog/1.png"], [0, 2, 1], "bird"),
        (["dog/1.png", "dog/2.png"], [0, 0, 2], "bird, cat"),
        (["cat/1.png", "bird/1.png", "dog/1.png"], [1, 1, 1], ""),
    ],
)
def test_what_is_there_is_measured(
    run: Path, tmp_path: Path, names: list[str], counts: list[int], missing: str
) -> None:
    write_images(tmp_path / "new", names, size=(8, 8))
    result = evaluate(run, tmp_path / "new", "--format", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [entry["n"] for entry in found["classes"]] == counts
    assert found["n"] == len(names)
    text = evaluate(run, tmp_path / "new").stdout
    assert f"Of {missing} there are no images" in text if missing else "there are no" not in text


def test_a_list_of_one_class_is_measured(run: Path, tmp_path: Path) -> None:
    write_images(tmp_path, ["1.png", "2.png"], size=(8, 8))
    (tmp_path / "new.csv").write_text("file,label\n1.png,cat\n2.png,cat\n")
    assert "of 2 images" in evaluate(run, tmp_path / "new.csv").stdout


def test_a_class_that_the_run_does_not_have_is_named(run: Path, tmp_path: Path) -> None:
    write_images(tmp_path / "new", ["Cat/1.png", "dog/2.png"], size=(8, 8))
    message = str(evaluate(run, tmp_path / "new").exception)
    assert "new has Cat" in message


def test_labels_may_be_corrected_to_a_class_that_was_missing(run: Path, tmp_path: Path) -> None:
    write_images(tmp_path / "new", ["cat/1.png", "cat/2.png"], size=(8, 8))
    reviewed = tmp_path / "reviewed.csv"
    reviewed.write_text("sample,label\ncat/1.png,bird\n")
    result = evaluate(run, tmp_path / "new", "--labels", reviewed, "--format", "json")
    assert result.exit_code == 0, result.output
    assert [entry["n"] for entry in json.loads(result.stdout)["classes"]] == [1, 1, 0]


def test_to_learn_from_one_class_is_refused_as_before(tmp_path: Path) -> None:
    write_images(tmp_path / "new", ["cat/1.png", "cat/2.png"], size=(8, 8))
    result = labelproof("train", "--data", tmp_path / "new", "--output", tmp_path / "run")
    assert "expected at least two classes" in str(result.exception)
