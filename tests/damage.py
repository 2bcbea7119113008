"""Damaged files and hostile texts, and what each reader makes of them.

A reader is a valid example and a function that reads it. `attack` damages the example by a seed and
says how the reading ended: well, in one of our own errors, in a traceback from deep inside, in a
hang, in too much memory, or with the interpreter. `attack_all` does so in a child process whose
memory is limited. `python tests/damage.py MINUTES` goes on for that long.
"""

import atexit
import gzip
import io
import json
import multiprocessing
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from killed_runs import lost
from PIL import Image
from safetensors.torch import save_file

import labelproof
from labelproof.audit.predictions import match_predictions
from labelproof.cli.options import read_settings
from labelproof.data import load_dataset, load_huggingface, parse_imbalance, read_idx
from labelproof.data.cifar import CIFAR100_LAYOUTS
from labelproof.data.images import decode_image
from labelproof.data.published import idx_bytes
from labelproof.fitting.attempts import read_attempts
from labelproof.fitting.frozen import load_body_weights
from labelproof.losses import parse_loss
from labelproof.models.text import make_network
from labelproof.noise import human_labels
from labelproof.noise.text import parse_noise
from labelproof.npz import read_npz
from labelproof.training.checkpoint import Checkpoint, newest_whole, save_checkpoint
from labelproof.training.provenance import read_description
from labelproof.training.record import read_record

SECONDS = 10.0
"""Of the processor, which a reading takes a hundredth of on a slow machine."""
MEGABYTES = 1024
OUTCOMES = ("read", "clean error", "traceback", "hang", "memory", "hang or crash")
PATIENCE = 300
"""Seconds of the clock after which a child that says nothing is ended."""
HOME = str(Path(labelproof.__file__).parent)

# What breaks parsers: numbers out of range, deep nesting, ends of text, other encodings.
HOSTILE = (
    *(b"\0", b"\n", b'"', b"-1", b"NaN", b"1e999", b"9" * 20, b"\xff\xfe", b"\xef\xbb"),
    *(b"null", b"{}", b"[]", b"[" * 3000, b'{"a":' * 3000, b"(" * 3000, b"9" * 100_000),
    *(b"," * 5000, b"a" * 20_000, b" " * 5000, b"\xf0\x9f\x98\x80", b"../../etc/passwd"),
    b"normalized(" * 300,
)


class HangError(BaseException):
    """A reader took longer than it may."""


@dataclass(frozen=True)
class Reader:
    """A valid example, and what reads it."""

    make: Callable[[Path], Path | str]
    """Writes the example into a folder, and returns the file that is damaged; or a text."""
    read: Callable[[Any], object]
    """Reads it: given the folder, or the text."""
    pack: Callable[[bytes], bytes] = bytes
    """Compresses the damaged bytes, whose checksums would find the damage before the reader."""


def damage(content: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut out, doubled, or replaced by what breaks parsers."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        start = chance.randrange(len(changed) + 1)
        # Most formats keep what matters at their beginning.
        start = min(start, chance.choice((16, 128, 1024, len(changed))))
        end = min(start + chance.choice((0, 1, 1, 4, 8, 64)), len(changed))
        kind = chance.randrange(6)
        if kind == 0:
            changed[start:end] = chance.randbytes(end - start)
        elif kind == 1:
            del changed[start:end]
        elif kind == 2:
            changed[start:start] = changed[start:end] * chance.choice((1, 2, 100))
        elif kind == 3:
            changed[start:end] = chance.choice(HOSTILE)
        elif kind == 4 and chance.random() < 0.3:
            del changed[start:]
        else:
            size = chance.choice((1, 2, 4, 8))
            value = chance.choice((0, 1, (1 << 8 * size) - 1, 1 << (8 * size - 1)))
            changed[start : start + size] = value.to_bytes(size, chance.choice(("little", "big")))
    return bytes(changed)


def attack(name: str, seed: int) -> tuple[str, str]:
    """How reading a damaged example ended, and what was said."""
    reader, chance = READERS[name], random.Random(seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = reader.make(folder)
        if isinstance(made, str):
            given: Any = damage(made.encode(), chance).decode("utf-8", "replace")
        else:
            made.write_bytes(reader.pack(damage(made.read_bytes(), chance)))
            given = folder
        return ending(lambda: reader.read(given))


def attack_all(name: str, seeds: Iterable[int]) -> Iterator[tuple[int, str, str]]:
    """The seed, the outcome and the words of each attack; what breaks the child is one, too."""
    for seed in seeds:
        try:
            yield seed, *child().apply_async(attack, (name, seed)).get(PATIENCE)
        except multiprocessing.TimeoutError:
            child().terminate()
            child.cache_clear()
            yield seed, "hang or crash", "the process was ended"


@cache
def child() -> Any:
    """A process that attacks, which may break; not a fork, since threads do not survive one."""
    pool = multiprocessing.get_context("spawn").Pool(1, limit_memory)
    atexit.register(pool.terminate)
    return pool


def end_child() -> None:
    """No other test has this process among its own."""
    if child.cache_info().currsize:
        child().terminate()
        child().join()
        child.cache_clear()


def limit_memory() -> None:
    """Of addresses, of which not all are used."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + (2 * MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ending(read: Callable[[], object]) -> tuple[str, str]:
    """How a reading ended, and what was said."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = "read", ""
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read()
    except HangError:
        outcome = "hang", ""
    except MemoryError:
        outcome = "memory", ""
    except Exception as error:
        outcome = ("clean error" if is_ours(error) else "traceback"), traceback.format_exc()[-3000:]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return ("memory", f"{grown >> 10} MB") if grown > MEGABYTES << 10 else outcome


def is_ours(error: Exception) -> bool:
    """Whether an error was raised by us, and says what it is about."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    ours = place is not None and place.tb_frame.f_code.co_filename.startswith(HOME)
    right_kind = isinstance(error, (ValueError, TypeError, OSError, ImportError))
    said = str(error)
    # A codec's error would come from our frame, too.
    return ours and right_kind and not isinstance(error, UnicodeError) and 0 < len(said) < 3000


@contextmanager
def time_limit() -> Iterator[None]:
    """Interrupt what takes too much of the processor's time; the clock counts what others do."""

    def interrupt(*_: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


GENERATOR = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "size": GENERATOR.normal(size=40).round(3),
        "colour": ["red", "blue"] * 20,
        "day": ["2024-01-02", "2024-03-04"] * 20,
        "text": [f"words of row {number}" for number in range(40)],
        "label": ["cat", "dog", "dog", "cat"] * 10,
    }
)
PIXELS = GENERATOR.integers(0, 256, (8, 6, 6, 3), dtype=np.uint8)
LABELS = np.arange(8) % 2


def stored(
    name: str,
    example: str | bytes | Callable[[Path], object],
    read: Callable[[Path], object] = load_dataset,
    pack: Callable[[bytes], bytes] = bytes,
) -> Reader:
    """Keeps the example, or what writes it, in a file of that name, which is read by its path."""

    def make(folder: Path) -> Path:
        path = folder / name
        if callable(example):
            example(path)
        else:
            path.write_bytes(example.encode() if isinstance(example, str) else example)
        return path

    return Reader(make, lambda folder: read(folder / name), pack)


def write_npy(path: Path) -> None:
    np.save(path, PIXELS)
    np.save(path.with_name("photos_labels.npy"), LABELS)


def array_bytes(array: Any) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def packed(members: dict[str, bytes]) -> bytes:
    """An archive whose checksums are right, whatever is in it."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return written.getvalue()


def as_npz(member: bytes) -> bytes:
    return packed({"images.npy": member, "labels.npy": array_bytes(LABELS)})


def write_image(path: Path) -> None:
    Image.fromarray(PIXELS[0]).resize((24, 16)).save(path)


def read_image(path: Path) -> object:
    return decode_image(str(path), mode="RGB", short_side=8)


def cifar(version: int, name: str) -> Reader:
    layout = CIFAR100_LAYOUTS[version]

    def make(folder: Path) -> Path:
        pixels = PIXELS.reshape(-1)[: 3072 // 4].repeat(4)
        for file_name in layout.files:
            if version == 0:
                content = np.hstack([[3, 30], pixels]).astype(np.uint8).tobytes() * 2
            else:
                labels = {"coarse_labels": [1, 2], "fine_labels": [3, 4]}
                content = pickle.dumps({"data": np.stack([pixels] * 2), **labels}, protocol=2)
            (folder / file_name).write_bytes(content)
        return folder / name

    return Reader(make, layout.read)


def write_huggingface(damaged: str) -> Callable[[Path], Path]:
    """A saved dataset is slow to write: it is written once and copied."""
    kept = Path(tempfile.mkdtemp(prefix="faults-"))

    def make(folder: Path) -> Path:
        if not (kept / "saved").exists():
            import datasets

            images = [{"bytes": png(each), "path": None} for each in PIXELS]
            features = datasets.Features(
                {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])}
            )
            rows = datasets.Dataset.from_dict({"image": images, "label": LABELS.tolist()}, features)
            datasets.disable_progress_bar()
            rows.save_to_disk(str(kept / "saved"))
        shutil.copytree(kept / "saved", folder / "saved")
        return next((folder / "saved").glob(damaged))

    return make


def png(pixels: Any) -> bytes:
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


def read_huggingface(folder: Path) -> None:
    for pixels in load_huggingface(folder / "saved", on_error="skip").train.images:
        assert pixels.ndim == 3


def write_checkpoint(folder: Path) -> Path:
    now = Checkpoint({"weight": torch.ones(4)}, {"state": torch.zeros(3)}, {"epoch": 1, "a": [2]})
    return save_checkpoint(folder / "checkpoint", "00001", now)


MODEL: dict[str, Any] = {"network": "mlp(hidden=8)", "input_shape": [4], "class_names": ["a", "b"]}
MODEL |= {"mean": [0.0] * 4, "std": [1.0] * 4}
HUMAN = {"clean_label": LABELS, "worse_label": LABELS[::-1].copy()}
SHEET = "xl/worksheets/sheet1.xml"


def excel_parts() -> dict[str, bytes]:
    content = io.BytesIO()
    TABLE.to_excel(content, index=False)
    with zipfile.ZipFile(content) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def as_excel(sheet: bytes) -> bytes:
    return packed(excel_parts() | {SHEET: sheet})


def text(example: str, read: Callable[[str], object]) -> Reader:
    return Reader(lambda _: example, read)


def build(words: str) -> object:
    # A place of code is imported where a network is made by name, so the colon is left out.
    return make_network(words.replace(":", ""), num_classes=3, input_shape=(5,))


def relabelled(path: Path) -> object:
    TABLE.to_csv(path.with_name("table.csv"), index=False)
    return load_dataset(path.with_name("table.csv"), labels=path, on_error="later")


def beside(read: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: read(path.parent)


def read_human(path: Path) -> object:
    return human_labels(path, "worse")


READERS: dict[str, Reader] = {
    "CSV": stored("table.csv", TABLE.to_csv(index=False)),
    "CSV, gzipped": stored("table.csv.gz", TABLE.to_csv(index=False), pack=gzip.compress),
    "JSONL": stored("table.jsonl", TABLE.to_json(orient="records", lines=True)),
    "Parquet": stored("table.parquet", TABLE.to_parquet),
    "Excel": stored("table.xlsx", lambda path: TABLE.to_excel(path, index=False)),
    "Excel, a sheet": stored("table.xlsx", excel_parts()[SHEET], pack=as_excel),
    "human labels, .npz": stored("human.npz", lambda path: np.savez(path, **HUMAN), read_human),
    "human labels, .pt": stored("human.pt", lambda path: torch.save(HUMAN, path), read_human),
    "probabilities": stored(
        "p.npz",
        lambda path: np.savez(path, probabilities=np.full((8, 2), 0.5)),
        lambda path: match_predictions(path, LABELS, class_names=["a", "b"]),
    ),
    "labels": stored(
        "labels.csv",
        "sample,label,given\nline 2,dog,cat\nline 5,,\nline 7,dog,dog\nline 9,dog,\n",
        relabelled,
    ),
    ".npy": stored("photos.npy", write_npy),
    ".npz": stored("photos.npz", lambda path: np.savez(path, images=PIXELS, labels=LABELS)),
    ".npz, a member": stored("photos.npz", array_bytes(PIXELS), pack=as_npz),
    "PNG": stored("photo.png", write_image, read_image),
    "JPEG": stored("photo.jpg", write_image, read_image),
    "IDX": stored("images-idx3-ubyte", idx_bytes(PIXELS[..., 0]), read_idx),
    "IDX, gzipped": stored("labels.gz", idx_bytes(PIXELS[..., 0]), read_idx, gzip.compress),
    "CIFAR, binary": cifar(0, "train.bin"),
    "CIFAR, pickles": cifar(1, "train"),
    "Hugging Face, Arrow": Reader(write_huggingface("*.arrow"), read_huggingface),
    "Hugging Face, state.json": Reader(write_huggingface("state.json"), read_huggingface),
    "Hugging Face, info": Reader(write_huggingface("dataset_info.json"), read_huggingface),
    "model.json": stored("model.json", json.dumps(MODEL), beside(read_description)),
    "record.json": stored("record.json", '{"name": "x", "curve": {}}', beside(read_record)),
    "predictions.npz": stored(
        "predictions.npz",
        lambda path: np.savez(path, held=LABELS, logits=np.ones((8, 2))),
        lambda path: read_npz(path, ["held", "logits"]),
    ),
    "fit.json": stored(
        "fit.json",
        '{"asked": {"data": "x"}, "loss": "ce", "given_up": [], "places": {}}',
        beside(read_attempts),
    ),
    "checkpoint": Reader(write_checkpoint, lambda folder: newest_whole(folder / "checkpoint")),
    "weights": stored(
        "weights.safetensors",
        lambda path: save_file(NETWORK.state_dict(), path),
        lambda path: load_body_weights(NETWORK, path, "head"),
    ),
    "TOML": stored("settings.toml", 'loss = "ce+sr"\nepochs = 3\nnesterov = true\n', read_settings),
    "loss": text("0.5*normalized(gce(q=0.7)+mae)+ce+sr(p=0.01,lambda0=4)", parse_loss),
    "noise": text("symmetric:0.4:exact", parse_noise),
    "network": text("mlp(hidden=16,depth=2,batch_norm=true)", build),
    "imbalance": text("long-tailed:0.01", parse_imbalance),
}


NETWORK = make_network("cnn4(width=2,hidden=8)", num_classes=3, input_shape=(1, 8, 8))


def main(minutes: float) -> int:
    """Attack all readers until the time is up, kill runs; print a table and what to mend."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in READERS}
    problems: dict[str, str] = {}
    end, seed = time.monotonic() + 60 * minutes, int(os.environ.get("SEED", "1000000"))
    while time.monotonic() < end:
        for name in READERS:
            for at, outcome, said in attack_all(name, range(seed, seed + 20)):
                counts[name][outcome] += 1
                if outcome not in ("read", "clean error"):
                    print(f"{name}, seed {at}: {outcome}", file=sys.stderr, flush=True)
                    problems.setdefault(f"{name}, {outcome}: {said[-300:]}", f"{name}, seed {at}")
        seed += 20
    print(f"| reader | tries | {' | '.join(OUTCOMES)} |")
    print(f"|---{'|---:' * (len(OUTCOMES) + 1)}|")
    for name, found in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        cells = [found.total(), *(found[outcome] for outcome in OUTCOMES)]
        print(f"| {name} | {' | '.join(f'{number:,}' for number in cells)} |")
    with tempfile.TemporaryDirectory() as folder:
        killed, bad = lost(Path(folder), step=1)
    print(f"\n{killed} runs killed, one before each file operation: {len(bad)} lost {bad or ''}")
    for problem, where in problems.items():
        print(f"\n{where}\n{problem}")
    return 1 if problems or bad else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
