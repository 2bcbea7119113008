"""Damaged files and hostile texts end in a result or in one of our own errors, soon."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from damage import READERS, attack_all, ending
from PIL import Image

from labelproof.cli.options import split_names
from labelproof.data import load_dataset, read_idx
from labelproof.data.images import decode_image
from labelproof.losses import parse_loss
from labelproof.models.text import make_network
from labelproof.noise import human_labels
from labelproof.training.files import read_arrays
from labelproof.training.provenance import read_description

pytestmark = pytest.mark.skipif(not hasattr(__import__("signal"), "SIGPROF"), reason="needs POSIX")


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_example_is_read_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    made = reader.make(tmp_path)
    if isinstance(made, Path):
        made.write_bytes(reader.pack(made.read_bytes()))
    outcome, said = ending(lambda: reader.read(made if isinstance(made, str) else tmp_path))
    assert outcome == "read", said
    outcomes = set()
    for seed, outcome, said in attack_all(name, range(20)):
        assert outcome in ("read", "clean error"), f"seed {seed}: {outcome}\n{said}"
        outcomes.add(outcome)
    assert "clean error" in outcomes or name in ("record.json", "checkpoint")


def bomb_png(folder: Path) -> Callable[[], object]:
    Image.new("1", (400_000, 1)).save(folder / "line.png")
    return lambda: decode_image(str(folder / "line.png"), mode="RGB", short_side=224)


def bomb_npz(folder: Path) -> Callable[[], object]:
    zeros(folder / "zeros.npz", "images.npy", "labels.npy")
    return lambda: load_dataset(folder / "zeros.npz")


def zeros(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            with archive.open(name, "w", force_zip64=True) as member:
                for _ in range(300):
                    member.write(bytes(1 << 20))


def bomb_human(folder: Path) -> Callable[[], object]:
    zeros(folder / "human.npz", "clean_label.npy", "worse_label.npy")
    return lambda: human_labels(folder / "human.npz", "worse")


def bomb_run(folder: Path) -> Callable[[], object]:
    zeros(folder / "predictions.npz", "held.npy")
    return lambda: read_arrays(folder / "predictions.npz", ["held"])


def bomb_excel(folder: Path) -> Callable[[], object]:
    zeros(folder / "t.xlsx", "xl/workbook.xml", "xl/worksheets/sheet1.xml")
    return lambda: load_dataset(folder / "t.xlsx")


def nameless_columns(folder: Path) -> Callable[[], object]:
    (folder / "t.csv").write_text("label,x" + "," * 4_000 + "\na,1" + "," * 4_000 + "\n")
    return lambda: load_dataset(folder / "t.csv")


def more_cells_than_names(folder: Path) -> Callable[[], object]:
    (folder / "t.csv").write_text("label,x\n" + "1," * 5000 + "2\n")
    return lambda: load_dataset(folder / "t.csv")


def many_dimensions(folder: Path) -> Callable[[], object]:
    (folder / "images").write_bytes(b"\0\0\x08\xff" + bytes([0, 0, 0, 1]) * 255 + b"\1")
    return lambda: read_idx(folder / "images")


def many_classes(folder: Path) -> Callable[[], object]:
    np.savez(folder / "human.npz", clean_label=[0, 1], worse_label=[0, 10**9])
    return lambda: human_labels(folder / "human.npz", "worse")


def bomb_npy(folder: Path) -> Callable[[], object]:
    written = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        written, {"descr": "|u1", "fortran_order": False, "shape": (1 << 40, 8, 8)}
    )
    (folder / "images.npy").write_bytes(written.getvalue() + bytes(100))
    np.save(folder / "images_labels.npy", np.arange(4))
    return lambda: load_dataset(folder / "images.npy")


def bomb_csv(folder: Path) -> Callable[[], object]:
    packer = zlib.compressobj(level=1, wbits=31)
    with (folder / "rows.csv.gz").open("wb") as stream:
        for _ in range(300):
            stream.write(packer.compress(b"1,2\n" * (1 << 18)))
        stream.write(packer.flush())
    return lambda: load_dataset(folder / "rows.csv.gz")


def long_header(folder: Path) -> Callable[[], object]:
    name = "id_1_" * 50_000
    (folder / "t.csv").write_text(f"{name},{name}x,label\n" + "1,2,a\n3,4,b\n" * 20)
    return lambda: load_dataset(folder / "t.csv")


def deep_json(folder: Path) -> Callable[[], object]:
    (folder / "model.json").write_text('{"a":' * 100_000)
    return lambda: read_description(folder)


def deep_jsonl(folder: Path) -> Callable[[], object]:
    (folder / "t.jsonl").write_text('{"label":"a","x":' + "[" * 100_000 + "]" * 100_000 + "}\n")
    return lambda: load_dataset(folder / "t.jsonl")


def long_number(folder: Path) -> Callable[[], object]:
    (folder / "t.jsonl").write_text(
        f'{{"label":"a","x":{"9" * 1_000_000}}}\n{{"label":"b","x":1}}\n'
    )
    return lambda: load_dataset(folder / "t.jsonl")


def outside_names(folder: Path) -> Callable[[], object]:
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["../../etc", "s3://bucket"]}))
    return lambda: load_dataset(folder)


BOMBS: tuple[Callable[[Path], Callable[[], object]], ...] = (
    *(bomb_png, bomb_npz, bomb_npy, bomb_csv, deep_json, deep_jsonl),
    *(long_number, outside_names, bomb_human, bomb_run, bomb_excel, many_classes),
    *(nameless_columns, more_cells_than_names, many_dimensions),
)


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_what_is_small_and_would_become_large_is_refused(
    bomb: Callable[[Path], Callable[[], object]], tmp_path: Path
) -> None:
    refused(bomb(tmp_path))


def test_long_names_cost_little(tmp_path: Path) -> None:
    assert ending(long_header(tmp_path))[0] == "read"
    for words in (" ," * 5000 + "((", "a(" * 5000, "gce(q=0.5, " * 1000):
        assert ending(lambda words=words: split_names(words))[0] == "read"


def refused(read: Callable[[], object]) -> None:
    outcome, said = ending(read)
    assert outcome == "clean error", f"{outcome}\n{said}"


def test_a_network_that_no_machine_can_hold_is_refused() -> None:
    rows, images, large = (5,), (3, 32, 32), (3, 60_000, 60_000)
    for text, shape in (
        ("mlp(hidden=999999999)", rows),
        ("mlp(hidden=1000000,depth=3)", rows),
        ("mlp(depth=999999999)", rows),
        ("cnn8(width=900000)", images),
        ("resnet50(width=99999)", images),
        ("resnet50(width=1024)", images),
        ("mlp", large),
        ("cnn4", large),
    ):
        refused(partial(make_network, text, num_classes=3, input_shape=shape))


def test_texts_of_losses_are_bounded() -> None:
    for text in ("ce+" * 10_000 + "ce", "normalized(" * 500 + "ce", "9" * 1_000_000 + "*ce"):
        refused(partial(parse_loss, text))
