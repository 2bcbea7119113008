import json
import pickle
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, load_file, save
from small_runs import names, weights_of
from torch import Tensor, nn

from labelproof.training import checkpoint as module
from labelproof.training.checkpoint import Checkpoint, newest_whole, save_checkpoint


def at(epoch: int, size: int = 100) -> Checkpoint:
    full = torch.full((size,), float(epoch))
    return Checkpoint({"weight": full}, {"moment": full + 0.5}, {"epoch": epoch})


def save_three(folder: Path) -> None:
    for epoch in range(3):
        save_checkpoint(folder, f"{epoch:05}", at(epoch), keep=3)


def newest(folder: Path) -> int | None:
    _, found, problems = newest_whole(folder)
    assert not problems
    return None if found is None else found.values["epoch"]


def awkward_tensors() -> dict[str, Tensor]:
    shared = torch.arange(12.0)
    images = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    return {
        "transposed": torch.arange(6).reshape(2, 3).T,
        "strided": torch.arange(10)[::3],
        "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "shared": shared,
        "same": shared,
        "part": shared[3:7],
        "channels_last": images.to(memory_format=torch.channels_last),
        "scalar": torch.tensor(3.5),
        "bool": torch.tensor([True, False]),
        "random_state": torch.Generator().manual_seed(5).get_state(),
        "bf16": torch.tensor([1.5, -0.0, torch.inf, torch.nan], dtype=torch.bfloat16),
        "double": torch.tensor([0.1, 5e-324], dtype=torch.float64),
        "long": torch.tensor([-(2**63), 2**63 - 1]),
        "empty": torch.empty(0),
        "empty_matrix": torch.empty(3, 0, 2, dtype=torch.int16),
        "parameter": nn.Parameter(torch.ones(2)),
        "naïve/名 前": torch.zeros(1),
    }


def assert_same(loaded: dict[str, Tensor], saved: dict[str, Tensor]) -> None:
    assert loaded.keys() == saved.keys()
    for name, tensor in saved.items():
        expected = tensor.detach().cpu()
        torch.testing.assert_close(loaded[name], expected, rtol=0, atol=0, equal_nan=True)


def test_every_kind_of_tensor_and_value_survives_in_a_safetensors_file(tmp_path: Path) -> None:
    values = {"epoch": 3, "curve": {"z": [1e-300, None, float("inf")], "a": []}, "odd": "\ud800 é"}
    saved = Checkpoint(awkward_tensors(), awkward_tensors(), values)
    path = save_checkpoint(tmp_path, "00003", saved)
    name, loaded, problems = newest_whole(tmp_path)
    assert (name, problems) == ("00003", [])
    assert load_file(path).keys() == {
        f"{part}.{key}" for part in ("weights", "state") for key in saved.weights
    }
    (plain := tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.unlink()  # what was loaded does not depend on the file
    assert_same(loaded.weights, saved.weights)
    assert_same(loaded.state, saved.state)
    assert json.dumps(loaded.values) == json.dumps(values)
    loaded.weights["shared"].zero_()
    assert loaded.weights["same"][3] == loaded.weights["part"][0] == 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_tensors_of_a_gpu_come_back_on_the_cpu(tmp_path: Path) -> None:
    saved = {name: tensor.detach().cuda() for name, tensor in awkward_tensors().items()}
    save_checkpoint(tmp_path, "1", Checkpoint(saved, {}, {}))
    assert_same(weights_of(tmp_path), saved)


def test_the_newest_are_kept_and_other_files_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "read-me.txt").touch()
    (tmp_path / ".labelproof-1a2b3c4d").touch()
    (tmp_path / "._00001.safetensors").touch()  # a Mac leaves such beside what it copies
    for epoch in range(5):
        save_checkpoint(tmp_path, f"{epoch:05}", at(epoch))
    others = ["notes", "read-me.txt"]
    hidden = "._00001.safetensors"
    assert names(tmp_path) == [hidden, "00003.safetensors", "00004.safetensors", *others]
    save_checkpoint(tmp_path, "00005", at(5), keep=1)
    assert names(tmp_path) == [hidden, "00005.safetensors", *others]
    # One that goes back is the newest: those after it are of an abandoned course.
    save_checkpoint(tmp_path, "00000", at(7))
    assert newest(tmp_path) == 7
    # Nothing there is no checkpoint.
    for folder in (tmp_path / "notes", tmp_path / "nowhere"):
        assert newest(folder) is None
    with pytest.raises(FileNotFoundError):  # a run whose folder was removed does not bring it back
        save_checkpoint(tmp_path / "removed" / "checkpoint", "1", at(1))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + b"\0",
    "without values": lambda content: save(load(content)),
    "deep": lambda content: save(load(content), {"labelproof": "[" * 100_000}),
    "a pickle": lambda _: pickle.dumps({"weights": {}}),
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, damage: str) -> None:
    save_three(tmp_path)
    last = tmp_path / "00002.safetensors"
    last.write_bytes(DAMAGES[damage](last.read_bytes()))
    name, found, (problem,) = newest_whole(tmp_path)
    assert (name, found.values["epoch"]) == ("00001", 1)
    assert problem.startswith(f"{last}: ")
    # Going on before it removes it, and nothing that is whole.
    save_checkpoint(tmp_path, "00001-1", at(10))
    assert names(tmp_path) == ["00001-1.safetensors", "00001.safetensors"]


def test_any_changed_byte_is_found(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, "1", at(1, size=4))
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x15
        path.write_bytes(damaged)
        with suppress(module.LaterFormatError):
            _, found, problems = newest_whole(tmp_path)
            assert found is None, place
            assert len(problems) == 1


def test_another_format_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path, "1", at(1))
    with monkeypatch.context() as later:
        later.setattr(module, "_FORMAT", module._FORMAT + 1)
        save_checkpoint(tmp_path, "2", at(2))
    with pytest.raises(module.LaterFormatError, match="update"):
        newest(tmp_path)


def test_one_that_is_replaced_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_three(tmp_path)
    read = Path.read_bytes

    def removed(path: Path) -> bytes:
        monkeypatch.undo()
        shutil.move(tmp_path / "00002.safetensors", tmp_path / "00003.safetensors")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", removed)
    assert newest(tmp_path) == 2
