from pathlib import Path

import numpy as np
import pytest
import torch
from planted import Planted
from shared_data import shared_data

from labelproof.noise import HUMAN_LABELS, human_labels, parse_noise
from labelproof.noise.matrices import SUPER_CLASSES

CLEAN = np.array([0, 1, 2, 1], dtype=np.uint8)
WORSE = np.array([0, 1, 1, 2], dtype=np.uint8)


def write(path: Path, **arrays: object) -> Path:
    np.savez(path, **{"clean_label": CLEAN, "worse_label": WORSE} | arrays)
    return path


def test_the_published_labels_have_the_published_rates() -> None:
    folder = shared_data("cifarn") / "cifar-n"
    rates = {"aggregate": 9.01, "random1": 17.23, "random2": 18.12, "random3": 17.64}
    for which, percent in (rates | {"worse": 40.21, "noisy": 40.20}).items():
        file = folder / ("cifar100n.npz" if which == "noisy" else "cifar10n.npz")
        result = human_labels(file, which)
        assert round(100 * result.rate, 2) == percent
        assert HUMAN_LABELS[which].rate == pytest.approx(percent / 100)
        assert len(result.noisy) == 50_000
        np.testing.assert_allclose(result.matrix.sum(axis=1), 1)
    # The published super-classes are the table's.
    with np.load(folder / "cifar100n.npz", allow_pickle=False) as file:
        pairs = set(zip(file["clean_label"], file["clean_coarse_label"], strict=True))
    table = {(label, place) for place, labels in enumerate(SUPER_CLASSES) for label in labels}
    assert pairs == table


@pytest.mark.parametrize("suffix", [".npz", ".pt", "legacy.pt"])
def test_labels_are_read_from_both_kinds_of_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"labels{suffix}"
    if suffix == ".npz":
        write(path)
    else:
        content = {"clean_label": CLEAN, "worse_label": torch.tensor(WORSE)}
        torch.save(content, path, _use_new_zipfile_serialization=suffix == ".pt")
    result = parse_noise("human:worse").apply(CLEAN, num_classes=3, seed=0, human=path)
    np.testing.assert_array_equal(result.clean, CLEAN)
    np.testing.assert_array_equal(result.noisy, WORSE)
    assert result.rate == 0.5
    np.testing.assert_array_equal(result.matrix, [[1, 0, 0], [0, 0.5, 0.5], [0, 1, 0]])


@pytest.mark.parametrize("name", ["labels.npz", "labels.pt"])
def test_a_file_cannot_run_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    harm = np.array([Planted(Path("harm"))] * 4, dtype=object)
    if name.endswith("npz"):
        write(Path(name), worse_label=harm)
    else:
        torch.save({"clean_label": CLEAN, "worse_label": harm}, name)
    with pytest.raises(ValueError, match="expected named arrays and nothing else"):
        human_labels(name, "worse")
    assert not Path("harm").exists()


def test_bad_arrays_and_arguments_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.npz")
    for labels in ([1, 0, 2, 1], [0, 1, 2]):
        with pytest.raises(ValueError, match="labels: expected the 4 clean labels"):
            human_labels(path, "worse", labels=labels)
    for name, worse in enumerate((WORSE[:3], WORSE / 2, WORSE.astype(int) - 1)):
        bad = write(tmp_path / f"{name}.npz", worse_label=worse)
        with pytest.raises((TypeError, ValueError), match=f"{name}.npz: .*worse"):
            human_labels(bad, "worse")
    (tmp_path / "torn.npz").write_bytes(path.read_bytes()[:100])
    torch.save([1], tmp_path / "list.pt")
    for given, which, named in (
        (path, "worst", "which"),
        (path, "noisy", "noisy_label"),
        ("labels.npy", "worse", "path"),
        (tmp_path / "torn.npz", "worse", "named arrays"),
        (tmp_path / "list.pt", "worse", "named arrays"),
    ):
        with pytest.raises(ValueError, match=named):
            human_labels(given, which)
    with pytest.raises(FileNotFoundError):
        human_labels(tmp_path / "nowhere.npz", "worse")
