"""Checkpoints: everything that a run needs to resume.

A checkpoint is a folder: `weights.safetensors`, `state.safetensors`, and `state.json` with the
plain values and the checksums of the other two. Reading one never runs code.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from labelproof.ranges import whole
from labelproof.training.files import folders, remove_folder, settle, whole_folder

__all__ = [
    "Checkpoint",
    "LaterFormatError",
    "all_tensors",
    "can_draw_on",
    "check_newest",
    "check_tensors",
    "from_bytes",
    "load_checkpoint",
    "load_weights",
    "make_checkpoint",
    "newest_whole",
    "refuse_misfit",
    "save_checkpoint",
    "to_bytes",
]

_FORMAT = 1
_WEIGHTS = "weights.safetensors"
_STATE = "state.safetensors"
_VALUES = "state.json"
_FILES = (_WEIGHTS, _STATE, _VALUES)

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


class LaterFormatError(RuntimeError):
    """A checkpoint was written by a later version of this package."""


@dataclass(frozen=True)
class Checkpoint:
    """A training at one moment.

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

    The one that is written counts as the newest: those whose names sort after it belong to a course
    of the training that was given up, because they are broken or because it was started anew, and
    go. Where writing fails, the earlier ones stay as they are.

    Args:
        folder: Where the checkpoints of one training are; nothing else should write there, which
            `owning` sees to.
        name: The checkpoint's folder; names sort by age, as `00012-000391` does.
        checkpoint: What to write; tensors may be on any device and in any memory format.
        keep: How many checkpoints to leave, this one included.

    Example:
        >>> import torch
        >>> folder = getfixture("tmp_path")
        >>> for epoch in range(3):
        ...     now = Checkpoint({"weight": torch.ones(2)}, {}, {"epoch": epoch})
        ...     path = save_checkpoint(folder, f"{epoch:05}", now)
        >>> sorted(path.name for path in folder.iterdir())
        ['00001', '00002']
        >>> sorted(file.name for file in path.iterdir())
        ['state.json', 'state.safetensors', 'weights.safetensors']
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise ValueError(f"name: expected letters, digits, '-', '_' and '.', got {name!r}")
    keep = whole("keep", keep, 1)
    _check_plain("values", checkpoint.values)
    tensors = {_WEIGHTS: checkpoint.weights, _STATE: checkpoint.state}
    check_tensors("weights", checkpoint.weights)
    check_tensors("state", checkpoint.state)
    with _disk_trouble_explained(folder, name, tensors):
        settle(folder)
        with whole_folder(folder / name) as unfinished:
            files: dict[str, Any] = {}
            for file, named in tensors.items():
                content = to_bytes(named)
                (unfinished / file).write_bytes(content)
                files[file] = {"bytes": len(content), "sha256": _sha256(content)}
                del content
            document = {"format": _FORMAT, "files": files, "values": checkpoint.values}
            document["sha256"] = _digest(document)
            text = json.dumps(document, indent=1)
            (unfinished / _VALUES).write_text(text, encoding="utf-8")
    found = _checkpoints(folder)
    earlier = sorted((other for other in found if other < name), reverse=True)
    kept = {name, *earlier[: keep - 1]}
    for other in found.keys() - kept:
        # One that cannot be removed now, such as while it is read on Windows, is tried next time.
        with contextlib.suppress(OSError):
            remove_folder(found[other])
    return folder / name


def load_checkpoint(folder: Path, *, on_problem: Callable[[str], None]) -> Checkpoint | None:
    """Read the newest checkpoint that is whole, onto the CPU.

    Args:
        folder: Where the checkpoints are.
        on_problem: Called with a sentence for each newer one that is not whole.

    Returns:
        The checkpoint, or `None` where the training starts anew.

    Raises:
        LaterFormatError: The checkpoint is of a later version of labelproof. It is not passed over,
            since the training that starts instead would remove it.

    Example:
        >>> import torch
        >>> folder = getfixture("tmp_path")
        >>> load_checkpoint(folder, on_problem=print)
        >>> for epoch in range(2):
        ...     now = Checkpoint({"weight": torch.ones(2)}, {}, {"epoch": epoch})
        ...     path = save_checkpoint(folder, f"{epoch:05}", now)
        >>> (path / "weights.safetensors").unlink()
        >>> load_checkpoint(folder, on_problem=print).values
        /.../00001: weights.safetensors is missing; checkpoint 00000 is used instead
        {'epoch': 0}
    """
    name, checkpoint, problems = newest_whole(folder)
    outcome = (
        f"checkpoint {name} is used instead"
        if checkpoint
        else "no earlier checkpoint is whole, so the training starts anew"
    )
    for problem in problems:
        on_problem(f"{problem}; {outcome}")
    return checkpoint


def load_weights(
    folder: Path, *, on_problem: Callable[[str], None] = warnings.warn
) -> dict[str, Tensor]:
    """The weights of the newest checkpoint that is whole, for evaluation.

    Args:
        folder: Where the checkpoints are.
        on_problem: Called with a sentence for each newer one that is not whole.

    Raises:
        FileNotFoundError: There is no whole checkpoint.

    Example:
        >>> import torch
        >>> folder = getfixture("tmp_path")
        >>> now = Checkpoint({"weight": torch.ones(2)}, {}, {"epoch": 0})
        >>> path = save_checkpoint(folder, "00000", now)
        >>> load_weights(folder)
        {'weight': tensor([1., 1.])}
    """
    name, checkpoint, problems = newest_whole(folder)
    if checkpoint is None:
        raise FileNotFoundError("; ".join([f"{folder}: no whole checkpoint", *problems]))
    for problem in problems:
        on_problem(f"{problem}; checkpoint {name} is used instead")
    return checkpoint.weights


def newest_whole(folder: Path) -> tuple[str, Checkpoint | None, list[str]]:
    """The newest whole checkpoint with its name, and what is wrong with those after it.

    Args:
        folder: Where the checkpoints are.

    Returns:
        An empty name and `None` where no checkpoint is whole.

    Raises:
        LaterFormatError: The checkpoint is of a later version of labelproof.

    Example:
        >>> newest_whole(getfixture("tmp_path"))
        ('', None, [])
    """
    problems: list[str] = []
    for name, path in sorted(_checkpoints(folder).items(), reverse=True):
        try:
            return name, _read(path), problems
        except ValueError as error:
            if not path.is_dir():  # a training that goes on has removed it meanwhile: look again
                return newest_whole(folder)
            problems.append(f"{folder / name}: {error}")
    return "", None, problems


def check_newest(folder: Path) -> None:
    """Refuse a folder whose newest checkpoint is not whole, as far as sizes tell.

    The tensors are not read, so that it takes no time with a large network: a file that was cut off
    is found, and one with a wrong byte is not.

    Args:
        folder: Where the checkpoints are.

    Raises:
        ValueError: There is none, or a file of it is damaged; the message names it.
        LaterFormatError: The checkpoint is of a later version of labelproof.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> check_newest(folder)
        Traceback (most recent call last):
            ...
        ValueError: /...: there is no checkpoint
    """
    found = _checkpoints(folder)
    if not found:
        raise ValueError(f"{folder}: there is no checkpoint")
    newest = found[max(found)]
    try:
        document = _document(newest)
        for file, written in document["files"].items():
            try:
                size = (newest / file).stat().st_size
            except FileNotFoundError:
                raise ValueError(f"{file} is missing") from None
            _check_size(file, size, written["bytes"])
    except ValueError as error:
        raise ValueError(f"{newest}: {error}") from None


def _checkpoints(folder: Path) -> dict[str, Path]:
    """Folders with any of a checkpoint's files, by name; whatever else lies there is not ours."""
    return {
        name: path
        for name, path in folders(folder).items()
        if any((path / file).exists() for file in _FILES)
    }


def _read(path: Path) -> Checkpoint:
    """A checkpoint, or a `ValueError` that says what is wrong with it."""
    document = _document(path)
    weights, state = (_tensors(path / file, document["files"][file]) for file in (_WEIGHTS, _STATE))
    return Checkpoint(weights, state, document["values"])


def _document(path: Path) -> dict[str, Any]:
    """A checkpoint's plain values, and what is said of its other files."""
    try:
        document = json.loads(_content(path / _VALUES))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(f"{_VALUES} is not JSON, or only a part of it") from None
    if not isinstance(document, dict) or document.pop("sha256", None) != _digest(document):
        raise ValueError(f"{_VALUES} is not as it was written: its checksum differs")
    if document["format"] != _FORMAT:
        raise LaterFormatError(
            f"{path}: expected a checkpoint of format {_FORMAT}, got {document['format']}; update "
            "labelproof, or choose another folder"
        )
    return document


def _check_size(name: str, size: int, written: int) -> None:
    if size != written:
        raise ValueError(f"{name} has {size:,} bytes instead of the {written:,} written")


def _tensors(path: Path, written: Mapping[str, Any]) -> dict[str, Tensor]:
    # From memory, not mapped from the file: the file may be removed while the tensors live.
    content = _content(path)
    _check_size(path.name, len(content), written["bytes"])
    if _sha256(content) != written["sha256"]:
        raise ValueError(f"{path.name} is not as it was written: its checksum differs")
    try:
        return from_bytes(content)
    except ValueError as error:
        raise ValueError(f"{path.name} {error}") from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path.name} is missing") from None
    except OSError as error:
        # Only a failing disk makes a checkpoint broken. Others, such as a missing permission, can
        # be put right, and the training that starts instead would remove what could not be read.
        if error.errno != errno.EIO:
            raise
        raise ValueError(f"{path.name} cannot be read ({error.strerror})") from None


def _check_plain(place: str, value: object) -> None:
    """Refuse what JSON would drop, or give back as something else."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{place}: expected text as a key, got {key!r}")
            _check_plain(f"{place}[{key!r}]", inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_plain(f"{place}[{index}]", inner)
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        raise TypeError(
            f"{place}: expected a plain JSON value (text, number, true, false, None, list, dict), "
            f"got {value!r} ({type(value).__name__})"
        )


@contextlib.contextmanager
def _disk_trouble_explained(
    folder: Path, name: str, tensors: Mapping[str, Mapping[str, Tensor]]
) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM | _NOT_ALLOWED:
            raise
        earlier = max(_checkpoints(folder), default=None)
        kept = f"the earlier checkpoint {earlier} is kept" if earlier else "there is none earlier"
        if error.errno in _NO_ROOM:
            needed = sum(t.nbytes for named in tensors.values() for t in named.values())
            place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
            problem = (
                f"no room for checkpoint {name} ({error.strerror}): it needs more than {needed:,} "
                f"bytes, {shutil.disk_usage(place).free:,} are free"
            )
        else:
            problem = f"not allowed to write checkpoint {name} here ({error.strerror})"
        explained = type(error)(f"{folder}: {problem}; {kept}")
        explained.errno = error.errno
        raise explained from error


def _digest(document: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(document).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_tensors(argument: str, named: Mapping[str, Tensor]) -> None:
    """Refuse what such a file cannot hold, before anything is written.

    Args:
        argument: Its name, for the message.
        named: Tensors by name.

    Example:
        >>> check_tensors("weights", {"bias": torch.zeros(2)})
        >>> check_tensors("weights", {"bias": 0.0})
        Traceback (most recent call last):
            ...
        TypeError: weights: expected a tensor as 'bias', got 0.0 (float)
    """
    for name, tensor in named.items():
        if not isinstance(name, str) or name == "__metadata__":  # which the format keeps for itself
            raise ValueError(f"{argument}: expected a tensor's name, got {name!r}")
        if not isinstance(tensor, Tensor):
            came = f"{tensor!r} ({type(tensor).__name__})"
            raise TypeError(f"{argument}: expected a tensor as {name!r}, got {came}")
        dense = tensor.layout is torch.strided and tensor.device.type != "meta"
        if not dense or tensor.dtype not in (*_FLOATS, *_WHOLE):
            raise TypeError(
                f"{argument}: expected a dense tensor of real or whole numbers as {name!r}, got "
                f"one of {tensor.dtype}, {tensor.layout}, on {tensor.device}"
            )


def to_bytes(named: Mapping[str, Tensor]) -> bytes:
    """The content of a file with these tensors, from any device and in any memory format.

    In memory, because safetensors' own writer keeps the system's error to itself, makes files for
    their owner alone, and leaves a file that must be read again for its checksum.

    >>> from_bytes(to_bytes({"bias": torch.zeros(2)}))
    {'bias': tensor([0., 0.])}
    """
    taken: set[int] = set()
    packed: dict[str, Tensor] = {}
    for name, tensor in named.items():
        own = tensor.detach().cpu().contiguous().resolve_neg()
        if own.untyped_storage().data_ptr() in taken:  # the format knows no shared memory
            own = own.clone()
        taken.add(own.untyped_storage().data_ptr())
        packed[name] = own
    return save(packed)


def from_bytes(content: bytes) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU, each with memory of its own.

    >>> from_bytes(b"something else")
    Traceback (most recent call last):
        ...
    ValueError: is not a safetensors file (...)
    """
    try:
        return load(content)
    except SafetensorError as error:
        raise ValueError(f"is not a safetensors file ({error})") from None


def make_checkpoint(
    tensors: Mapping[str, Tensor], values: dict[str, Any], *, kept: str
) -> Checkpoint:
    """A checkpoint of everything that training changes.

    Args:
        tensors: By name, on the CPU.
        values: What else there is to remember.
        kept: What the names of the weights begin with that someone will predict with.
    """
    weights, state = {}, {}
    for name, tensor in tensors.items():
        if name.startswith(kept):
            weights[name.removeprefix(kept)] = tensor
        else:
            state[name] = tensor
    return Checkpoint(weights, state, values)


def all_tensors(checkpoint: Checkpoint, *, kept: str) -> dict[str, Tensor]:
    """The tensors that a checkpoint was made of, by the names they had."""
    weights = {f"{kept}{name}": tensor for name, tensor in checkpoint.weights.items()}
    # An earlier version also kept what a loss is made with, which follows from the configuration.
    made_with = ("._weight", "._temperature", ".class_weight", ".vector")
    state = {
        name: tensor
        for name, tensor in checkpoint.state.items()
        if not (name.startswith("algorithm.loss.") and name.endswith(made_with))
    }
    return state | weights


def refuse_misfit(found: Mapping[str, Tensor], mine: Mapping[str, Tensor], network: str) -> None:
    """Refuse tensors of a checkpoint that are not those of the run, by name and shape.

    Raises:
        ValueError: One is missing, too many, or of another shape.
    """
    for name in [*mine, *found]:
        there, here = (each[name].shape if name in each else None for each in (found, mine))
        if there != here:
            raise ValueError(
                f"checkpoint: {name} does not fit {network}, which has changed since; choose "
                "another folder, or start anew with --fresh"
            )


def can_draw_on(
    found: Mapping[str, Tensor], mine: Mapping[str, Tensor], *, between_epochs: bool
) -> bool:
    """Whether random numbers can go on where a checkpoint stood.

    Args:
        found: The states of generators, as the checkpoint has them.
        mine: Those of the run.
        between_epochs: Whether nothing is lost otherwise: an epoch starts from seeds of its own.

    Raises:
        ValueError: They are of another kind of device, and would be needed.
    """
    same = all(name in found and found[name].shape == mine[name].shape for name in mine)
    if not same and not between_epochs:
        raise ValueError(
            "checkpoint: was saved in the middle of an epoch on another kind of device, whose "
            "random numbers are not to be had here; go on there until the epoch ends, or start "
            "anew with --fresh"
        )
    return same
