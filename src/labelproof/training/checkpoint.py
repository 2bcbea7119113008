"""Checkpoints: everything that a run needs to resume.

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
    """A checkpoint was written by another version of this package."""


@dataclass(frozen=True)
class Checkpoint:
    """A run at one moment.

    Attributes:
        weights: The network's tensors by name, as `state_dict` gives them.
        state: Every other tensor by name: the optimizer's moments, averages, random states.
        values: The rest as plain JSON values: epoch, step, configuration, metrics so far.
    """

    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(folder: Path, name: str, checkpoint: Checkpoint, *, keep: int = 2) -> Path:
    """Write a checkpoint whole or not at all, then remove all but the newest.

    The one that is written counts as the newest. Those whose names sort after it belong to a course
    of the run that was abandoned, and are removed. If writing fails, the earlier ones stay.

    Args:
        folder: Where the checkpoints of one run are, in a folder that exists; nothing else should
            write there, which `owning` ensures.
        name: Names sort by age, as `00012-000391` does.
        checkpoint: What to write; tensors may be on any device and in any memory format.
        keep: How many checkpoints to leave, this one included.

    Raises:
        OSError: It cannot be written.
    """
    content = _to_bytes(checkpoint)
    path = folder / f"{name}{_SUFFIX}"
    # Not its parents: a run whose folder was removed must not bring it back.
    folder.mkdir(exist_ok=True)
    clear_litter(folder)
    write_bytes(path, content, make_parents=False)
    found = _checkpoints(folder)
    earlier = sorted((other for other in found if other < name), reverse=True)
    for other in found.keys() - {name, *earlier[: keep - 1]}:
        # One that cannot be removed now, such as while it is read on Windows, is tried next time.
        with suppress(OSError):
            found[other].unlink()
    return path


def newest_whole(folder: Path) -> tuple[str, Checkpoint | None, list[str]]:
    """The newest whole checkpoint on the CPU, its name, and what is wrong with those after it.

    Returns:
        An empty name and `None` if no checkpoint is whole.

    Raises:
        LaterFormatError: The checkpoint is of another version of labelproof. It is not skipped,
            because the run that starts instead would remove it.
    """
    problems: list[str] = []
    for name, path in sorted(_checkpoints(folder).items(), reverse=True):
        try:
            return name, _read(path), problems
        except FileNotFoundError:  # the run continues and has removed it: look again
            return newest_whole(folder)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    return "", None, problems


def refuse_misfit(found: Mapping[str, Tensor], mine: Mapping[str, Tensor], network: str) -> None:
    """Refuse tensors of a checkpoint that are not those of the run, by name and shape.

    Raises:
        ValueError: One is missing, too many, or of another shape.
    """
    for name in [*mine, *found]:
        there, here = (each[name].shape if name in each else None for each in (found, mine))
        if there != here:
            raise ValueError(
                f"checkpoint: {name} does not fit {network}, which has changed since, or was on "
                "another kind of device; choose another folder, or start anew with --fresh"
            )


def _checkpoints(folder: Path) -> dict[str, Path]:
    """The checkpoints of a folder, by name; whatever else lies there is not ours."""
    return {
        path.name.removesuffix(_SUFFIX): path
        for path in folder.glob(f"*{_SUFFIX}")
        if not path.name.startswith(".")
    }


def _to_bytes(checkpoint: Checkpoint) -> bytes:
    """In memory, because safetensors' own writer hides the system's error."""
    # Cloned, because the format has no shared memory.
    packed = {
        prefix + name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for prefix, named in ((_WEIGHTS, checkpoint.weights), (_STATE, checkpoint.state))
        for name, tensor in named.items()
    }
    document = {"format": _FORMAT, "values": checkpoint.values}
    text = json.dumps(document | {"sha256": _digest(packed, document)})
    return save(packed, metadata={_KEY: text})


def _read(path: Path) -> Checkpoint:
    """A checkpoint, or a `ValueError` that says what is wrong with it."""
    # From memory, not mapped from the file: the file may be removed while the tensors live.
    content = path.read_bytes()
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        document = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_KEY])
        checksum, version = document.pop("sha256"), document["format"]
    except (SafetensorError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"not a whole checkpoint of labelproof ({error})") from None
    if version != _FORMAT:
        raise LaterFormatError(
            f"{path}: expected a checkpoint of format {_FORMAT}, got {version}; update labelproof, "
            "or choose another folder"
        )
    if checksum != _digest(tensors, document):
        raise ValueError("not as it was written: its checksum differs")
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
