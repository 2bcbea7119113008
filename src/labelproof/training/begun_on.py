"""Which data a run was begun on, noted in its folder, so that it never goes on with others.

A configuration has the data's name and not what is in them: another column of labels, another file
of human labels or corrected rows make another run that looks the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from labelproof.data.notices import readable
from labelproof.noise import parse_noise
from labelproof.training.configuration import Configuration
from labelproof.training.durable import folders, write_text
from labelproof.training.examples import Examples
from labelproof.training.fingerprint import fingerprint as data_fingerprint
from labelproof.training.record import RECORD, read_record
from labelproof.training.saved import BEGUN_ON

__all__ = ["OtherDataError", "mark_data", "note_data", "read_note", "refuse_other_data"]


class OtherDataError(ValueError):
    """A folder holds a run on other data.

    Args:
        folder: The run's.
        advice: What can be done about it, where it is asked for.
        data: What the run there is of, if it is known.
        kind: What the folder holds: a run, or an audit.

    Example:
        >>> print(OtherDataError(Path("run")))
        run holds a run on other data: labels, files or rows have changed since, or others were
        asked for. --fresh trains on them anew; --output keeps both
        >>> print(OtherDataError(Path("run"), data="pets.npz"))
        run holds a run on other data: it is of pets.npz, whose labels, files or rows have changed
        since, or others were asked for. --fresh trains on them anew; --output keeps both
    """

    def __init__(
        self,
        folder: Path,
        advice: str = "--fresh trains on them anew; --output keeps both",
        data: str | None = None,
        kind: str = "a run",
    ):
        self.folder = folder
        self.advice = advice
        self.data = data
        self.kind = kind
        whose = "" if data is None else f"it is of {readable(data)}, whose "
        of = "on" if kind == "a run" else "of"
        super().__init__(
            f"{folder} holds {kind} {of} other data: {whose}labels, "
            f"files or rows have changed since, or others were asked for. {advice}"
        )

    def __reduce__(self) -> tuple[type[OtherDataError], tuple[Path, str, str | None, str]]:
        # A worker of a cluster raises it in another process than the one that tells of it.
        return type(self), (self.folder, self.advice, self.data, self.kind)


def mark_data(configuration: Configuration, examples: Examples) -> str:
    """The fingerprint of what a run learns from.

    Args:
        configuration: Of the run.
        examples: Its examples.

    Example:
        >>> from labelproof.data import load_digits
        >>> from labelproof.training.examples import choose_examples
        >>> run = Configuration("digits", noise="symmetric:0.4")
        >>> mark_data(run, choose_examples(run, load_digits())) == data_fingerprint(load_digits())
        True
    """
    # All noise but people's follows from the labels and the configuration.
    human = parse_noise(configuration.noise).kind == "human"
    return data_fingerprint(examples.dataset, given=examples.given if human else None)


def refuse_other_data(folder: Path, fingerprint: Callable[[], str]) -> None:
    """Refuse to go on with a run that was begun on other data, or to take it for finished.

    A folder without a note, as an earlier version left it, is taken for what is asked for; and one
    in which there is nothing to go on from yet may as well begin with these data.

    Args:
        folder: The run's; it need not be there.
        fingerprint: Gives that of the data as they are now; only called where it matters, since
            they may have to be loaded for it.

    Raises:
        OtherDataError: The run is on other data.
        ValueError: The note is damaged.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> note_data(folder, "27d1")
        >>> refuse_other_data(folder, lambda: "0a5c")
        >>> _ = (folder / "record.json").write_text("{}")
        >>> refuse_other_data(folder, lambda: "27d1")
        >>> refuse_other_data(folder, lambda: "0a5c")
        Traceback (most recent call last):
            ...
        labelproof.training.begun_on.OtherDataError: ... holds a run on other data: ...
    """
    if not (folder / RECORD).exists() and not folders(folder / "checkpoint"):
        return
    noted = read_note(folder)
    if noted is not None and noted != fingerprint():
        raise OtherDataError(folder, data=_data_of(folder))


def note_data(folder: Path, fingerprint: str) -> None:
    r"""Note which data the run in a folder is on; a note that says so already stays as it is.

    >>> folder = getfixture("tmp_path")
    >>> note_data(folder, "27d1")
    >>> (folder / "fingerprint.json").read_text()
    '{"fingerprint": "27d1"}\n'
    """
    text = json.dumps({"fingerprint": fingerprint}) + "\n"
    path = folder / BEGUN_ON
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)


def _data_of(folder: Path) -> str | None:
    """What a finished run is of, as it was named."""
    record = read_record(folder)
    data = None if record is None else record.configuration.get("data")
    return data if isinstance(data, str) else None


def read_note(folder: Path) -> str | None:
    """The fingerprint that `note_data` noted; `None` where an earlier version noted nothing.

    Args:
        folder: The run's.

    Raises:
        ValueError: The note is damaged.

    Example:
        >>> folder = getfixture("tmp_path")
        >>> note_data(folder, "27d1")
        >>> read_note(folder)
        '27d1'
    """
    path = folder / BEGUN_ON
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["fingerprint"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path}: not what labelproof writes there ({error}); start anew with --fresh, or "
            "choose another folder with --output"
        ) from None
