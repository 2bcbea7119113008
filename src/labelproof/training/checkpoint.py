"""Checkpoints, from which a run resumes.

A checkpoint is one safetensors file. Its tensors are named `weights.NAME` (the network) and
`state.NAME` (the rest); its metadata holds the plain values as JSON and a checksum of everything.
Reading one never runs code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from labelproof.training.files import clear_litter, write_bytes

_FORMAT = 2
_SUFFIX = ".safetensors"
_KEY = "labelproof"
_WEIGHTS, _STATE = "weights.", "state."


class LaterFormatError(RuntimeError):
    """The checkpoint was written by another version of this package."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run.

    Attributes:
        weights: The `state_dict` of the network that is evaluated.
        state: All other tensors by name: moments of the optimizer, tallies, random states.
        values: The rest as plain JSON values: epoch, step, configuration, metrics so far.
    """

    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(folder: Path, name: str, checkpoint: Checkpoint, *, keep: int = 2) -> Path:
    """Write a checkpoint atomically, then remove all but the newest.

    The new checkpoint counts as the newest. Those whose names sort after it belong to an abandoned
    course of the run and are removed. If writing fails, the earlier ones stay.

    Args:
        folder: The folder of a run's checkpoints; its parent must exist. No other process may write
            there, which `owning` ensures.
        name: Names sort by age, such as `00012-0000391`.
        checkpoint: Tensors may be on any device and in any memory format.
        keep: Number of checkpoints to keep, this one included.

    Raises:
        OSError: The file cannot be written.
    """
    content = _to_bytes(checkpoint)
    path = folder / f"{name}{_SUFFIX}"
    # Without parents: a run whose folder was removed must not create it again.
    folder.mkdir(exist_ok=True)
    clear_litter(folder)
    write_bytes(path, content)
    present = _checkpoints(folder)
    earlier = sorted((other for other in present if other < name), reverse=True)
    for other in present.keys() - {name, *earlier[: keep - 1]}:
        # If it cannot be removed, such as while it is read on Windows, the next call tries again.
        with suppress(OSError):
            present[other].unlink()
    return path


def newest_whole(folder: Path) -> tuple[str, Checkpoint | None, list[str]]:
    """Load the newest checkpoint that is not corrupted, on the CPU.

    Returns:
        Its name, the checkpoint, and a message for each newer one that is corrupted; an empty name
        and `None` if there is none.

    Raises:
        LaterFormatError: The checkpoint is of another version of labelproof. It is not skipped,
            because the run that would start instead would remove it.
    """
    problems: list[str] = []
    for name, path in sorted(_checkpoints(folder).items(), reverse=True):
        try:
            return name, _read(path), problems
        except FileNotFoundError:  # a running process has removed it: look again
            return newest_whole(folder)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    return "", None, problems


def refuse_misfit(
    saved: Mapping[str, Tensor], expected: Mapping[str, Tensor], network: str
) -> None:
    """Refuse a checkpoint whose tensors differ from the run's in name or shape.

    Raises:
        ValueError: A tensor is missing, unexpected or of another shape.
    """
    for name in [*expected, *saved]:
        there, here = (each[name].shape if name in each else None for each in (saved, expected))
        if there != here:
            raise ValueError(
                f"checkpoint: {name} does not fit {network}, which has changed since, or was on "
                "another kind of device; choose another folder, or start anew with --fresh"
            )


def _checkpoints(folder: Path) -> dict[str, Path]:
    """The checkpoints of a folder, by name; other files are ignored."""
    return {
        path.name.removesuffix(_SUFFIX): path
        for path in folder.glob(f"*{_SUFFIX}")
        if not path.name.startswith(".")
    }


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    """Serialised in memory, because safetensors' own writer hides the system's error."""
    # Cloned, because the format does not support shared memory.
    packed = {
        prefix + name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for prefix, named in ((_WEIGHTS, checkpoint.weights), (_STATE, checkpoint.state))
        for name, tensor in named.items()
    }
    document = {"format": _FORMAT, "values": checkpoint.values}
    text = json.dumps(document | {"sha256": _digest(packed, document)})
    return save(packed, metadata={_KEY: text})


def _read(path: Path) -> Checkpoint:
    """Load a checkpoint; raises a `ValueError` if it is corrupted."""
    # Not memory-mapped: the file may be removed while the tensors are in use.
    content = path.read_bytes()
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        document = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_KEY])
        checksum, version = document.pop("sha256"), document["format"]
    except (SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"not a valid checkpoint of labelproof ({error})") from None
    if version != _FORMAT:
        raise LaterFormatError(
            f"{path}: expected a checkpoint of format {_FORMAT}, got {version}; update labelproof, "
            "or choose another folder"
        )
    if checksum != _digest(tensors, document):
        raise ValueError("corrupted: its checksum differs")
    weights, state = (
        {name.removeprefix(start): each for name, each in tensors.items() if name.startswith(start)}
        for start in (_WEIGHTS, _STATE)
    )
    return Checkpoint(weights, state, document["values"])


def _digest(tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(document).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name!r} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
