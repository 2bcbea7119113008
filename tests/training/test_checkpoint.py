import errno
import json
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from labelproof.training import files
from labelproof.training.checkpoint import (
    Checkpoint,
    check_newest,
    load_checkpoint,
    load_weights,
    save_checkpoint,
)
from labelproof.training.run_folder import owning

PROCESSES = str(Path(__file__).with_name("checkpoint_processes.py"))
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes and locks")


def at(epoch: int, size: int = 100) -> Checkpoint:
    full = torch.full((size,), float(epoch))
    return Checkpoint({"weight": full}, {"moment": full + 0.5}, {"epoch": epoch})


def save_three(folder: Path) -> None:
    for epoch in range(3):
        save_checkpoint(folder, f"{epoch:05}", at(epoch), keep=3)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def epoch_of(checkpoint: Checkpoint | None) -> int | None:
    return None if checkpoint is None else checkpoint.values["epoch"]


def refuse(problem: str) -> None:
    raise AssertionError(problem)


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
        "overlapping": shared[5:9],
        "channels_last": images.to(memory_format=torch.channels_last),
        "negative": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
        "scalar": torch.tensor(3.5),
        "bool": torch.tensor([True, False]),
        "random_state": torch.Generator().manual_seed(5).get_state(),
        "bf16": torch.tensor([1.5, -0.0, torch.inf, torch.nan], dtype=torch.bfloat16),
        "half": torch.tensor([6e-8], dtype=torch.float16),
        "double": torch.tensor([0.1, 5e-324], dtype=torch.float64),
        "long": torch.tensor([-(2**63), 2**63 - 1]),
        "empty": torch.empty(0),
        "empty_matrix": torch.empty(3, 0, 2, dtype=torch.int16),
        "parameter": nn.Parameter(torch.ones(2)),
        "": torch.zeros(1),
        "naïve/名 前": torch.zeros(1),
    }


def assert_same(loaded: dict[str, Tensor], saved: dict[str, Tensor]) -> None:
    assert loaded.keys() == saved.keys()
    for name, tensor in saved.items():
        torch.testing.assert_close(
            loaded[name], tensor.detach().cpu(), rtol=0, atol=0, equal_nan=True
        )
        assert loaded[name].device.type == "cpu"


def test_every_kind_of_tensor_and_value_survives(tmp_path: Path) -> None:
    values = {"epoch": 3, "rate": 0.1, "curve": {"z": [1e-300, None], "a": []}, "odd": "\ud800 é"}
    saved = Checkpoint(awkward_tensors(), awkward_tensors(), values)
    save_checkpoint(tmp_path, "00003", saved)
    loaded = load_checkpoint(tmp_path, on_problem=refuse)
    assert loaded is not None
    assert_same(loaded.weights, saved.weights)
    assert_same(loaded.state, saved.state)
    assert json.dumps(loaded.values) == json.dumps(values)
    assert_same(load_weights(tmp_path), saved.weights)


def test_loaded_tensors_are_independent_of_each_other_and_of_the_file(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "1", Checkpoint(awkward_tensors(), {}, {}))
    loaded = load_weights(tmp_path)
    shutil.rmtree(tmp_path / "1")
    loaded["shared"].zero_()
    assert loaded["same"][3] == loaded["part"][0] == 3


def test_a_metric_that_is_not_a_number_does_not_stop_the_saving(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "1", Checkpoint({}, {}, {"loss": float("nan"), "best": float("inf")}))
    loaded = load_checkpoint(tmp_path, on_problem=refuse)
    assert loaded is not None
    assert loaded.values["loss"] != loaded.values["loss"]
    assert loaded.values["best"] == float("inf")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_tensors_of_a_gpu_come_back_on_the_cpu(tmp_path: Path) -> None:
    saved = {name: tensor.detach().cuda() for name, tensor in awkward_tensors().items()}
    save_checkpoint(tmp_path, "1", Checkpoint(saved, {}, {}))
    assert_same(load_weights(tmp_path), saved)


def test_training_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    def start() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.nn.init.constant_((network := nn.Linear(3, 2)).weight, 0.1)
        torch.nn.init.zeros_(network.bias)
        return network, torch.optim.Adam(network.parameters(), lr=0.1)

    def steps(network: nn.Module, optimizer: torch.optim.Optimizer, number: int) -> None:
        for _ in range(number):
            optimizer.zero_grad()
            network(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()

    network, optimizer = start()
    steps(network, optimizer, 3)
    moments = optimizer.state_dict()["state"]
    state = {f"{i}.{key}": value for i, of in moments.items() for key, value in of.items()}
    save_checkpoint(tmp_path, "3", Checkpoint(network.state_dict(), state, {}))
    steps(network, optimizer, 3)

    resumed, its_optimizer = start()
    loaded = load_checkpoint(tmp_path, on_problem=refuse)
    assert loaded is not None
    resumed.load_state_dict(loaded.weights)
    moments = {i: {k: loaded.state[f"{i}.{k}"] for k in of} for i, of in moments.items()}
    its_optimizer.load_state_dict({**its_optimizer.state_dict(), "state": moments})
    steps(resumed, its_optimizer, 3)
    for one, other in zip(network.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_files_are_plain_safetensors_and_json_for_anyone(tmp_path: Path) -> None:
    (plain := tmp_path / "plain").touch()
    path = save_checkpoint(tmp_path / "deep" / "checkpoint", "1", at(1))
    assert names(path) == ["state.json", "state.safetensors", "weights.safetensors"]
    assert (load_file(path / "weights.safetensors")["weight"] == 1).all()
    document = json.loads((path / "state.json").read_text())
    assert document["format"] == 1
    assert document["values"] == {"epoch": 1}
    size = (path / "state.safetensors").stat().st_size
    assert document["files"]["state.safetensors"]["bytes"] == size
    for file in path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_the_newest_are_kept_and_other_things_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "read-me.txt").touch()
    for epoch in range(5):
        save_checkpoint(tmp_path, f"{epoch:05}", at(epoch), keep=2)
    assert names(tmp_path) == ["00003", "00004", "notes", "read-me.txt"]
    save_checkpoint(tmp_path, "00005", at(5), keep=1)
    assert names(tmp_path) == ["00005", "notes", "read-me.txt"]
    assert epoch_of(load_checkpoint(tmp_path, on_problem=refuse)) == 5


def test_nothing_there_is_no_checkpoint(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path, on_problem=refuse) is None
    assert load_checkpoint(tmp_path / "nowhere", on_problem=refuse) is None
    with pytest.raises(FileNotFoundError, match="nowhere: no whole checkpoint"):
        load_weights(tmp_path / "nowhere")


def test_what_is_saved_last_is_loaded_also_after_going_back(tmp_path: Path) -> None:
    save_three(tmp_path)
    save_checkpoint(tmp_path, "00000", at(7))
    assert names(tmp_path) == ["00000"]
    assert epoch_of(load_checkpoint(tmp_path, on_problem=refuse)) == 7


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)


def lengthen(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"\0")


def change_the_epoch(file: Path) -> None:
    file.write_text(file.read_text().replace('"epoch": 2', '"epoch": 3'))


TENSORS = ["weights.safetensors", "state.safetensors"]
CHANGED = "is not as it was written: its checksum differs"
DAMAGES: list[Any] = [
    *[(file, cut, r"has \d+ bytes instead of the \d+ written") for file in TENSORS],
    *[(file, lengthen, r"has \d+ bytes instead of the \d+ written") for file in TENSORS],
    *[(file, flip, CHANGED) for file in TENSORS],
    *[(file, Path.unlink, "is missing") for file in (*TENSORS, "state.json")],
    ("state.json", cut, "is not JSON, or only a part of it"),
    ("state.json", lambda file: file.write_bytes(b"\xff\xfe"), "is not JSON"),
    ("state.json", lambda file: file.write_text("[]"), CHANGED),
    ("state.json", lambda file: file.write_text("{}"), CHANGED),
    ("state.json", flip, CHANGED),
    ("state.json", change_the_epoch, CHANGED),
]


@pytest.mark.parametrize(("file", "damage", "words"), DAMAGES)
def test_a_damaged_checkpoint_is_passed_over(
    tmp_path: Path, file: str, damage: Callable[[Path], None], words: str
) -> None:
    save_three(tmp_path)
    damage(tmp_path / "00002" / file)
    problems: list[str] = []
    assert epoch_of(load_checkpoint(tmp_path, on_problem=problems.append)) == 1
    (problem,) = problems
    assert problem.startswith(f"{tmp_path / '00002'}: {file} ")
    assert re.search(words, problem)
    assert problem.endswith("; checkpoint 00001 is used instead")
    with pytest.warns(UserWarning, match="checkpoint 00001 is used instead"):
        assert (load_weights(tmp_path)["weight"] == 1).all()


def test_training_starts_anew_where_all_are_damaged(tmp_path: Path) -> None:
    save_three(tmp_path)
    for epoch in range(3):
        cut(tmp_path / f"{epoch:05}" / "state.safetensors")
    problems: list[str] = []
    assert load_checkpoint(tmp_path, on_problem=problems.append) is None
    assert len(problems) == 3
    assert all(problem.endswith("so the training starts anew") for problem in problems)
    with pytest.raises(FileNotFoundError, match=r"(?s)no whole checkpoint; .*00002.*00000"):
        load_weights(tmp_path)


def test_going_on_before_a_damaged_checkpoint_loses_nothing(tmp_path: Path) -> None:
    save_three(tmp_path)
    cut(tmp_path / "00001" / "state.safetensors")
    cut(tmp_path / "00002" / "state.safetensors")
    save_checkpoint(tmp_path, "00000-1", at(10))
    assert epoch_of(load_checkpoint(tmp_path, on_problem=refuse)) == 10
    assert names(tmp_path) == ["00000", "00000-1"]


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


@pytest.mark.parametrize("forge", [False, True])
def test_a_pickle_is_refused_and_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "checkpoint"
    path = save_checkpoint(folder, "1", at(1))
    (path / "weights.safetensors").write_bytes(content := pickle.dumps(Trap()))
    if forge:  # with the checksums of the pickle, so that only the format is left to refuse it
        from labelproof.training import checkpoint

        document = json.loads((path / "state.json").read_text())
        sha256 = checkpoint._sha256(content)
        document["files"]["weights.safetensors"] = {"bytes": len(content), "sha256": sha256}
        del document["sha256"]
        document["sha256"] = checkpoint._digest(document)
        (path / "state.json").write_text(json.dumps(document))
    problems: list[str] = []
    assert load_checkpoint(folder, on_problem=problems.append) is None
    assert ("is not a safetensors file" in problems[0]) == forge
    assert not (tmp_path / "executed").exists()


def test_a_later_format_is_neither_passed_over_nor_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, "1", at(1))
    with monkeypatch.context() as later:
        later.setattr("labelproof.training.checkpoint._FORMAT", 2)
        save_checkpoint(tmp_path, "2", at(2))
    with pytest.raises(RuntimeError, match="expected a checkpoint of format 1, got 2; update"):
        load_checkpoint(tmp_path, on_problem=refuse)


def test_leftovers_of_dead_writers_go_at_the_next_save(tmp_path: Path) -> None:
    for name in (".unfinished-1a", ".removed-2b", ".replaced-00001"):
        shutil.copytree(save_checkpoint(tmp_path / "other", "x", at(9)), tmp_path / name)
    shutil.rmtree(tmp_path / "other")
    # Of a writer that died while it replaced 00001, when nothing else was there.
    assert epoch_of(load_checkpoint(tmp_path, on_problem=refuse)) == 9
    save_checkpoint(tmp_path, "00002", at(2))
    assert names(tmp_path) == ["00001", "00002"]
    (tmp_path / ".replaced-00002").mkdir()
    save_checkpoint(tmp_path, "00003", at(3))
    assert names(tmp_path) == ["00002", "00003"]


@pytest.mark.parametrize("moment", ["_sync", "shutil.rmtree"])
def test_an_interrupted_save_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    save_checkpoint(tmp_path, "00001", at(1))

    def interrupt(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(f"labelproof.training.files.{moment}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, "00002", at(2))
    assert epoch_of(load_checkpoint(tmp_path, on_problem=refuse)) in (1, 2)
    assert not any(name.startswith(".") for name in names(tmp_path))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_all_is_on_the_disk_before_the_name_and_the_name_before_the_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, "00001", at(1))
    events: list[str] = []
    sync, rename = os.fsync, Path.rename

    def told_sync(handle: int) -> None:
        events.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        sync(handle)

    def told_rename(path: Path, target: Path) -> Path:
        events.append(f"rename {path.name} {target.name}")
        return rename(path, target)

    monkeypatch.setattr(files.os, "fsync", told_sync)
    monkeypatch.setattr(Path, "rename", told_rename)
    save_checkpoint(tmp_path, "00002", at(2), keep=1)
    events = [re.sub(r"(unfinished|removed)-\w+", r"\1", event) for event in events]
    assert sorted(events[:3]) == [
        "sync state.json",
        "sync state.safetensors",
        "sync weights.safetensors",
    ]
    assert events[3:] == [
        "sync .unfinished",
        "rename .unfinished 00002",
        f"sync {tmp_path.name}",
        "rename 00001 .removed",
    ]


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a b", "a\n"])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="name: expected letters, digits"):
        save_checkpoint(tmp_path, name, at(1))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"a": [1, (2, 3)]},
            r"values\['a'\]\[1\]: expected a plain JSON .* got \(2, 3\) \(tuple\)",
        ),
        ({"a": {1: 2}}, r"values\['a'\]: expected text as a key, got 1"),
        ({"a": torch.tensor(1)}, r"values\['a'\]: expected a plain JSON value .*\(Tensor\)"),
    ],
)
def test_values_that_would_come_back_as_others_are_refused(
    tmp_path: Path, value: dict[str, Any], words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        save_checkpoint(tmp_path, "1", Checkpoint({}, {}, value))
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "named",
    [
        {"a": 1.0},
        {"a": torch.zeros(2, dtype=torch.complex64)},
        {"a": torch.eye(2).to_sparse()},
        {"a": torch.zeros(2, device="meta")},
        {"__metadata__": torch.zeros(2)},
        {1: torch.zeros(2)},
    ],
)
def test_what_the_format_cannot_hold_is_refused_before_anything_is_written(
    tmp_path: Path, named: dict[Any, Any]
) -> None:
    with pytest.raises((TypeError, ValueError), match="state: expected a"):
        save_checkpoint(tmp_path, "1", Checkpoint({}, named, {}))
    assert names(tmp_path) == []


def test_at_least_one_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep: expected a whole number of at least 1, got 0"):
        save_checkpoint(tmp_path, "1", at(1), keep=0)


@posix_only
@pytest.mark.parametrize("limit", [1_000, 100_000, 900_000])
def test_a_file_that_grows_too_large_costs_no_earlier_checkpoint(
    tmp_path: Path, limit: int
) -> None:
    import resource

    save_checkpoint(tmp_path, "00001", at(1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(OSError, match="no room for checkpoint 00002") as failure:
            save_checkpoint(tmp_path, "00002", at(2, 500_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert failure.value.errno == errno.EFBIG
    assert re.search(
        re.escape(f"{tmp_path}: ") + r".*needs more than 4,000,000 bytes, [\d,]+ are free; "
        r"the earlier checkpoint 00001 is kept$",
        str(failure.value),
    )
    assert names(tmp_path) == ["00001"]
    assert epoch_of(load_checkpoint(tmp_path, on_problem=refuse)) == 1


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="the administrator may write anywhere"
)
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "00001", at(1))
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError, match="not allowed to write checkpoint 00002 here"):
            save_checkpoint(tmp_path, "00002", at(2))
        with pytest.raises(PermissionError, match="not allowed to write here"), owning(tmp_path):
            pass
    finally:
        tmp_path.chmod(0o755)


@posix_only
def test_a_full_disk_and_a_read_only_one(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    line = 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"'
    try:
        refused = subprocess.run([*mount, line, "sh", disk, "true"], capture_output=True).returncode
    except FileNotFoundError:
        refused = 1
    if refused:
        pytest.skip("file systems cannot be mounted here")
    command = [*mount, line, "sh", disk, sys.executable, PROCESSES, "fill", disk / "checkpoint"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    full, read_only = (json.loads(text) for text in done.stdout.splitlines())
    message, code, left, epoch = full
    assert code == errno.ENOSPC
    assert re.search(r"disk/checkpoint: no room for checkpoint 0000\d \(No space left", message)
    needed, free = (
        int(text.replace(",", "")) for text in re.findall(r"([\d,]{4,}) ", message)[-2:]
    )
    assert needed > free > 0
    assert message.endswith(f"; the earlier checkpoint {epoch:05} is kept")
    assert left == [f"{epoch - 1:05}", f"{epoch:05}"]
    message, code, left_then, epoch_then = read_only
    assert code == errno.EROFS
    assert "disk/checkpoint: not allowed to write checkpoint 99999 here (Read-only" in message
    assert (left_then, epoch_then) == (left, epoch)


@posix_only
def test_killed_at_any_moment_the_last_announced_checkpoint_is_there(tmp_path: Path) -> None:
    command = [sys.executable, PROCESSES, "kill", tmp_path, "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rounds) == 20
    for announced, found, problems, _ in rounds:
        assert found - announced in (0, 1)
        assert problems == []
    assert any(hidden for *_, hidden in rounds), "no kill came in the middle of a save"


@posix_only
def test_a_folder_is_owned_by_one_process_until_it_dies(tmp_path: Path) -> None:
    command = [sys.executable, PROCESSES, "hold", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "holding\n"
            words = rf"another process \(pid {other.pid}\) is at work in {re.escape(str(tmp_path))}"
            with pytest.raises(RuntimeError, match=words), owning(tmp_path):
                pass
        finally:
            other.kill()
    with owning(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"
        save_checkpoint(tmp_path, "1", at(1))
        with pytest.raises(RuntimeError, match=rf"pid {os.getpid()}\)"), owning(tmp_path):
            pass
    with owning(tmp_path):
        assert names(tmp_path) == [".lock", "1"]


def test_sizes_tell_whether_the_newest_is_whole(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no checkpoint"):
        check_newest(tmp_path)
    save_three(tmp_path)
    check_newest(tmp_path)
    newest = tmp_path / names(tmp_path)[-1]
    cut(tmp_path / names(tmp_path)[0] / "weights.safetensors")
    check_newest(tmp_path)
    cut(newest / "state.safetensors")
    with pytest.raises(ValueError, match=f"{newest.name}: state.safetensors has .* bytes instead"):
        check_newest(tmp_path)
    (newest / "weights.safetensors").unlink()
    with pytest.raises(ValueError, match=f"{newest.name}: weights.safetensors is missing"):
        check_newest(tmp_path)
    cut(newest / "state.json")
    with pytest.raises(ValueError, match=f"{newest.name}: state.json is not JSON"):
        check_newest(tmp_path)
