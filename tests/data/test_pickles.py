import builtins
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cifar_files import python2_batch
from hypothesis import given
from hypothesis import strategies as st

from labelproof.data import UnsafePickleError
from labelproof.data.pickles import read_pickle

PLAIN = {
    "labels": [1, 2, 300, 70000, -5, 2**70],
    "nested": {"a": [None, True, False, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ()]},
    "half": 0.5,
    "text": "Zürich",
    "raw": b"\x00\xff",
    "many": list(range(300)),
}


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_plain_data_comes_out_as_it_went_in(protocol: int) -> None:
    content = {**PLAIN, "raw": ""} if protocol < 2 else PLAIN
    assert read_pickle(pickle.dumps(content, protocol=protocol), "file") == content


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "int64", ">i4", "float32", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_numbers_come_out_as_they_went_in(protocol: int, dtype: str, order: Any) -> None:
    array = np.asarray(np.arange(24).reshape(2, 3, 4) % 3, dtype=dtype, order=order)
    content = pickle.dumps({"data": array, "labels": [1]}, protocol=protocol)
    read = read_pickle(content, "file")
    assert read["data"].dtype == array.dtype
    np.testing.assert_array_equal(read["data"], array)


def test_an_array_alone_is_read() -> None:
    np.testing.assert_array_equal(
        read_pickle(pickle.dumps(np.arange(3), protocol=2), "file"), np.arange(3)
    )


def test_a_batch_of_python_2_is_read_as_python_itself_reads_it() -> None:
    data = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)
    content = python2_batch(data, {"labels": [1, 2, 3], "filenames": ["a.png", "b.png", "c.png"]})
    trusted = pickle.loads(content, encoding="latin1")  # noqa: S301 (written above)
    read = read_pickle(content, "data_batch_1")
    np.testing.assert_array_equal(read["data"], data)
    np.testing.assert_array_equal(trusted["data"], data)
    assert {key: read[key] for key in read if key != "data"} == {
        key: trusted[key] for key in trusted if key != "data"
    }


class Runs:
    """Runs a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any):
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


class Holder:
    def __init__(self) -> None:
        self.value = 1


def hostile(canary: Path) -> dict[str, bytes]:
    command = f"touch {canary}"
    array = b"cnumpy\nndarray\n"
    return {
        "system": pickle.dumps(Runs(os.system, command)),
        "system, protocol 0": f"cos\nsystem\n(S'{command}'\ntR.".encode(),
        "eval": pickle.dumps(Runs(builtins.eval, f"open({str(canary)!r}, 'w')"), protocol=2),
        "exec": pickle.dumps(Runs(builtins.exec, f"open({str(canary)!r}, 'w')"), protocol=5),
        "open": pickle.dumps(Runs(open, str(canary), "w")),
        "getattr": pickle.dumps(Runs(getattr, "", "join")),
        "getattr of numpy": b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'tofile'\ntR.",
        "attribute by a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        "module in a name": b"cnumpy\nndarray.tofile\n.",
        "numpy's own loader": b"cnumpy\nload\n(S'file'\ntR.",
        "instance": f"(S'{command}'\nios\nsystem\n.".encode(),
        "object": f"(cos\nsystem\nS'{command}'\no.".encode(),
        "class of ours": pickle.dumps(Holder()),
        "new object": b"\x80\x02cnumpy\nndarray\n)\x81.",
        "extension": b"\x80\x02\x82\x01.",
        "persistent": b"Pname\n.",
        "persistent, binary": b"\x80\x02NQ.",
        "ndarray as a function": array + b"((I1000000000000\nttR.",
        "dtype of objects": b"cnumpy\ndtype\n((lp0\ntR.",
        "codec": b"c_codecs\nencode\n(Vabc\nVrot13\ntR.",
        "list as a function": b"\x80\x02](K\x01tR.",
        "state of a list": b"\x80\x02]}b.",
        "state of a name": array + b"}b.",
        "object array": pickle.dumps({"data": np.array([1, "a"], dtype=object)}, protocol=2),
        "text array": pickle.dumps({"data": np.array(["a"])}, protocol=2),
        "structured array": pickle.dumps({"data": np.zeros(1, "u1,O")}, protocol=2),
        "date array": pickle.dumps({"data": np.zeros(1, "M8[s]")}, protocol=2),
        "array of a hidden dtype": pickle.dumps(np.zeros(2, ">i4"), protocol=2).replace(
            b"X\x01\x00\x00\x00>", b"X\x01\x00\x00\x00O"
        ),
    }


@pytest.mark.parametrize("name", hostile(Path("canary")))
def test_a_hostile_pickle_is_refused_and_runs_nothing(name: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with pytest.raises(UnsafePickleError, match=r"^batch: refused: the pickle"):
        read_pickle(hostile(canary)[name], "batch")
    assert not canary.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02\x8e" + struct.pack("<Q", 2**60) + b"x.",
        b"\x80\x02T\xff\xff\xff\x7fx.",
        b"\x80\x02\x8b\xff\xff\xff\x7fx.",
        b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b".",
        python2_batch(np.zeros((1, 3072), np.uint8), {}).replace(
            b"J\x01\0\0\0", b"J\xff\xff\xff\x7f"
        ),
    ],
    ids=["bytes", "text", "number", "frame", "array"],
)
def test_a_size_that_is_claimed_takes_no_memory(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^batch: the pickle is cut short or damaged"):
        read_pickle(content, "batch")


def test_a_memo_far_away_takes_no_memory() -> None:
    assert read_pickle(b"\x80\x02]r\xff\xff\xff\xff.", "batch") == []


def test_data_cannot_be_multiplied() -> None:
    text = b"\x80\x02Vaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nq\x010"
    encode = b"c_codecs\nencode\nh\x01Vlatin1\n\x86R"
    with pytest.raises(UnsafePickleError, match="makes more data than it holds"):
        read_pickle(text + b"](" + encode * 50 + b"e.", "batch")


def test_a_key_that_is_tuples_in_tuples_in_tuples_is_refused() -> None:
    deep = b"\x80\x02})" + b"\x85" * 200_000 + b"Ns."
    with pytest.raises(ValueError, match="a key that is neither text nor a number"):
        read_pickle(deep, "batch")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02.",
        b"(.",
        b"N",
        b"\x80\x02h\x05.",
        b"\x80\x02e.",
        b"\x80\x02NNe.",
        b"\x80\x02N(Ne.",
        b"\x80\x02N(NNu.",
        b"\x80\x02}(Nu.",
        b"\x80\x02(\x85.",
        b"cnumpy\nndarray\n.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R(K\x01Ntb.",
        b"\xff\xff.",
    ],
)
def test_a_damaged_pickle_is_explained(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^batch: the pickle is cut short or damaged"):
        read_pickle(content, "batch")


def test_every_beginning_of_a_pickle_is_explained() -> None:
    whole = python2_batch(np.zeros((1, 3), np.uint8), {"labels": [1], "names": ["a"]})
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"^batch: the pickle is cut short or damaged"):
            read_pickle(whole[:length], "batch")


WHOLE = python2_batch(np.zeros((2, 5), np.uint8), {"labels": [1, 2], "names": ["a", "b"]})


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=3))
def test_a_changed_pickle_is_data_or_a_value_error(position: int, change: bytes) -> None:
    content = WHOLE[:position] + change + WHOLE[position + len(change) :]
    try:
        read_pickle(content, "batch")
    except ValueError as error:
        assert str(error).startswith("batch: ")  # noqa: PT017 (either outcome is right)


@given(st.binary(max_size=60))
def test_random_bytes_are_data_or_a_value_error(content: bytes) -> None:
    try:
        read_pickle(content, "batch")
    except ValueError as error:
        assert str(error).startswith("batch: ")  # noqa: PT017 (either outcome is right)
