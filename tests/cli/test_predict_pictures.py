"""What is said about images before they are predicted, in the words of fit and audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_images import make_image, write_images
from trained import labelproof_to_its_end, train_digits

from labelproof.cli import console
from labelproof.data.image_folder import load_folder
from labelproof.data.notices import DataWarning
from labelproof.verbs.predictions import find_images

GREY = (1, 8, 8)
COLOUR = (3, 32, 32)


def told(folder: Path) -> list[str]:
    """What is said of a folder that is learned from."""
    with pytest.warns(DataWarning) as caught:
        load_folder(folder)
    return [f"warning: {warning.message}" for warning in caught]


def said(capsys: pytest.CaptureFixture[str], *paths: Path) -> list[str]:
    """What is said of images that are predicted, each of them once."""
    with console.told():
        list(find_images(paths, GREY))
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("suffix", ["gif", "tif"])
def test_pages_that_are_not_looked_at_are_warned_of(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_images(tmp_path, [f"{name}.{suffix}" for name in ("a/1", "a/2", "b/1")])
    assert said(capsys, tmp_path) == []
    pages = [make_image(seed) for seed in range(10, 13)]
    pages[0].save(tmp_path / f"b/2.{suffix}", save_all=True, append_images=pages[1:])
    (line,) = told(tmp_path)
    assert line.startswith("warning: 1 image has more than one page, such as")
    assert said(capsys, tmp_path) == [line]


def test_files_that_are_no_images_are_named_as_fit_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_images(tmp_path, ["a/1.png", "a/2.png", "b/1.png"])
    for name in ("a/3.heic", "b/4.HEIC", "b/IM0001", "b/._3.HEIC"):
        (tmp_path / name).touch()
    (line,) = told(tmp_path)
    assert "3 files left out" in line
    assert "2 .heic" in line
    assert said(capsys, tmp_path) == [line]
    assert said(capsys, tmp_path / "a" / "1.png") == []


def test_all_of_it_is_on_the_error_stream_of_the_command(tmp_path: Path) -> None:
    assert train_digits(tmp_path / "run", epochs=1).exit_code == 0
    photos = tmp_path / "photos"
    write_images(photos, ["1.png", "2.png", "3.png"], mode="L")
    (photos / "1.heic").touch()
    pages = [make_image(seed, mode="L") for seed in range(3)]
    pages[0].save(photos / "moving.gif", save_all=True, append_images=pages[1:])
    ended = labelproof_to_its_end("predict", tmp_path / "run", photos)
    # Nothing of it cannot be read.
    assert ended.returncode == 0
    assert len(ended.stdout.splitlines()) == 1 + 4
    kind, page = ended.stderr.splitlines()
    assert kind.startswith(f"warning: {photos}: 1 file left out")
    assert page.startswith("warning: 1 image has more than one page")


def save(folder: Path, shape: tuple[int, ...]) -> Path:
    path = folder / "one.npy"
    np.save(path, np.zeros(shape, np.uint8))
    return path


@pytest.mark.parametrize(
    ("run", "shape", "reason"),
    [
        (COLOUR, (32, 32, 3), "which would be 32 grey images of 32 x 3 pixels"),
        (COLOUR, (40, 60, 1), "which would be 40 grey images of 60 x 1 pixels"),
        (COLOUR, (3, 32, 32), "which would be 3 grey images of 32 x 32 pixels"),
        (GREY, (8, 8, 3), "which would be 8 grey images of 8 x 3 pixels"),
        (GREY, (8, 8, 1), "which would be 8 grey images of 8 x 1 pixels"),
        (GREY, (8, 8), "a single image"),
    ],
)
def test_one_image_is_not_taken_for_many(
    run: tuple[int, int, int], shape: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    path = save(tmp_path, shape)
    with pytest.raises(ValueError, match="array") as caught:
        list(find_images([path], run))
    message = str(caught.value)
    assert message.startswith(f"{path}: expected (N, H, W), (N, H, W, C) or (N, C, H, W)")
    assert f"got {shape}" in message
    assert reason in message
    assert "a single image is given as array[None]" in message
    ((images, _),) = find_images([save(tmp_path, (1, *shape))], run)
    assert len(images) == 1


def test_a_table_names_the_images(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_digits(run, epochs=1)
    write_images(tmp_path / "scans", ["a.png", "b.png", "c.png"], mode="L", size=(8, 8))
    table = tmp_path / "scans" / "new.csv"
    table.write_text("Schl\u00fcssel,Bild\nk7,b.png\nk8,gone.png\nk9,a.png\n", encoding="utf-8")
    ended = labelproof_to_its_end("predict", run, table, "--id", "schl\u00fcssel")
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"warning: {tmp_path}/scans/gone.png: ")
    header, first, second = (line.split(",") for line in ended.stdout.splitlines())
    assert header == ["path", "row", "schl\u00fcssel", "label", "probability"]
    assert first[:3] == [f"{tmp_path}/scans/b.png", "line 2", "k7"]
    assert second[:3] == [f"{tmp_path}/scans/a.png", "line 4", "k9"]
    alone = labelproof_to_its_end("predict", run, tmp_path / "scans" / "b.png")
    assert alone.stdout.splitlines()[1].split(",")[1:] == first[3:]
    # Beside a folder, which has no columns.
    both = labelproof_to_its_end("predict", run, table, tmp_path / "scans", "--skip-unreadable")
    assert both.returncode == 0
    assert [line.split(",")[1] for line in both.stdout.splitlines()[1:]] == [
        "line 2",
        "line 4",
        *[""] * 3,
    ]
    refused = labelproof_to_its_end("predict", run, tmp_path / "scans", "--id", "Bild")
    assert refused.returncode == 2
    assert "--id: expected with tables" in refused.stderr
