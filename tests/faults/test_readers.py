"""Damaged files and hostile texts end in a result or in one of our own errors, soon."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import READERS, attack_all, end_child, ending, read_human, stored

from labelproof.cli.options import split_names
from labelproof.data import load_dataset, read_idx
from labelproof.models.text import make_network
from labelproof.npz import read_npz
from labelproof.training.provenance import read_description

pytestmark = pytest.mark.skipif(not hasattr(__import__("signal"), "SIGPROF"), reason="needs POSIX")


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    end_child()


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_example_is_read_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    made = reader.make(tmp_path)
    if isinstance(made, Path):
        made.write_bytes(reader.pack(made.read_bytes()))
    outcome, said = ending(lambda: reader.read(made if isinstance(made, str) else tmp_path))
    assert outcome == "read", said
    outcomes = set()
    for seed, outcome, said in attack_all(name, range(8)):
        assert outcome in ("read", "clean error"), f"seed {seed}: {outcome}\n{said}"
        outcomes.add(outcome)
    assert "clean error" in outcomes or name in ("record.json", "checkpoint")


def zeros(*names: str) -> Callable[[Path], object]:
    """Writes an archive whose members unpack to 300 MB each."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name in names:
                with archive.open(name, "w", force_zip64=True) as member:
                    for _ in range(300):
                        member.write(bytes(1 << 20))

    return write


def claim_pixels(path: Path) -> None:
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        written, {"descr": "|u1", "fortran_order": False, "shape": (1 << 40, 8, 8)}
    )
    path.write_bytes(written.getvalue() + bytes(100))
    np.save(path.with_name("images_labels.npy"), np.arange(4))


NAMES = "id_1_" * 50_000
BOMBS: list[tuple[str, str | bytes | Callable[[Path], object], Callable[[Path], object]]] = [
    ("zeros.npz", zeros("images.npy", "labels.npy"), load_dataset),
    ("human.npz", zeros("clean_label.npy", "worse_label.npy"), read_human),
    ("predictions.npz", zeros("held.npy"), lambda path: read_npz(path, ["held"])),
    ("zeros.xlsx", zeros("xl/workbook.xml", "xl/worksheets/sheet1.xml"), load_dataset),
    ("images.npy", claim_pixels, load_dataset),
    ("nameless.csv", "label,x" + "," * 4_000 + "\na,1" + "," * 4_000 + "\n", load_dataset),
    ("wide.csv", "label,x\n" + "1," * 5000 + "2\n", load_dataset),
    ("idx", b"\0\0\x08\xff" + bytes([0, 0, 0, 1]) * 255 + b"\1", read_idx),
    ("model.json", '{"a":' * 100_000, lambda path: read_description(path.parent)),
    ("deep.jsonl", '{"label":"a","x":' + "[" * 100_000 + "]" * 100_000 + "}\n", load_dataset),
    ("long.jsonl", f'{{"label":"a","x":{"9" * 1_000_000}}}\n{{"label":"b","x":1}}\n', load_dataset),
    (
        "dataset_dict.json",
        json.dumps({"splits": ["../../etc", "s3://bucket"]}),
        lambda path: load_dataset(path.parent),
    ),
]


@pytest.mark.parametrize(("name", "content", "read"), BOMBS, ids=[bomb[0] for bomb in BOMBS])
def test_what_is_small_and_would_become_large_is_refused(
    name: str, content: Any, read: Callable[[Path], object], tmp_path: Path
) -> None:
    reader = stored(name, content, read)
    reader.make(tmp_path)
    refused(partial(reader.read, tmp_path))


def test_long_names_cost_little(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(f"{NAMES},{NAMES}x,label\n" + "1,2,a\n3,4,b\n" * 20)
    assert ending(partial(load_dataset, table))[0] == "read"
    for words in (" ," * 5000 + "((", "a(" * 5000, "gce(q=0.5, " * 1000):
        assert ending(lambda words=words: split_names(words))[0] == "read"


def refused(read: Callable[[], object]) -> None:
    outcome, said = ending(read)
    assert outcome == "clean error", f"{outcome}\n{said}"


def test_a_network_that_no_machine_can_hold_is_refused() -> None:
    large = ("mlp(hidden=10000,depth=100)", "resnet50(width=9999)")
    for text in ("mlp(hidden=999999999)", "mlp(depth=999999999)", *large):
        refused(partial(make_network, text, num_classes=3, input_shape=(3, 32, 32)))
