"""What becomes of parts of the data that are not learned from is said before anything begins."""

from __future__ import annotations

from pathlib import Path

from made_images import write_images
from trained import labelproof

SMALL = ("--network", "cnn4(width=4,hidden=8)", "--epochs", "1", "--device", "cpu", "--dry-run")


def write_parts(folder: Path, **parts: int) -> Path:
    for part, images in parts.items():
        names = [f"{part}/{label}/{i}.png" for label in ("cat", "dog") for i in range(images)]
        write_images(folder, names)
    return folder


def test_an_audit_names_the_parts_that_it_leaves_alone(tmp_path: Path) -> None:
    photos = write_parts(tmp_path / "photos", train=12, val=3, test=2)
    result = labelproof("audit", photos, *SMALL)
    assert result.exit_code == 0, result.output
    data, others, plan, *_ = result.stdout.splitlines()
    assert data.startswith("Data: 24 images, 2 classes")
    assert others == "Not audited: 6 images of validation, 4 images of test"
    assert plan.startswith("Cross-validation: ")


def test_a_fit_says_what_it_measures_on_and_what_it_does_not_use(tmp_path: Path) -> None:
    photos = write_parts(tmp_path / "photos", train=12, val=3, test=2)
    result = labelproof("fit", photos, *SMALL)
    assert result.exit_code == 0, result.output
    said = result.stdout.splitlines()
    assert "# Measured on: 4 images of test, never learned from" in said
    assert "# Not used: 6 images of validation" in said
