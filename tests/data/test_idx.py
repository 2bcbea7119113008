import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from labelproof.data import idx_bytes, read_idx

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0,), (0, 28, 28), (1, 1, 1, 1)])
@pytest.mark.parametrize("gzipped", [False, True])
def test_what_is_written_is_read(tmp_path: Path, shape: tuple[int, ...], gzipped: bool) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    content = idx_bytes(array)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if gzipped else content)
    read = read_idx(path)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, array)


def test_gzip_is_seen_from_the_content_not_from_the_name(tmp_path: Path) -> None:
    plain = tmp_path / "labels.gz"
    plain.write_bytes(idx_bytes(np.arange(3, dtype=np.uint8)))
    assert read_idx(str(plain)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with 00 00 08, got ''"),
        (b"\0\0", "begins with 00 00 08, got '00 00'"),
        (b"<!DOCTYPE html>", "was a web page saved"),
        (b"\0\0\x07\x01\0\0\0\1\0", "begins with 00 00 08, got '00 00 07 01'"),
        (b"\0\0\x0d\x01\0\0\0\1\0\0\0\0", "expected IDX of unsigned bytes, got float32"),
        (b"\0\0\x08\x00", "the header is cut short"),
        (b"\0\0\x08\x03\0\0\0\1", "the header is cut short"),
        (idx_bytes(IMAGES)[:-5], r"expected 24 bytes after the header \(2 x 3 x 4\), got 19"),
        (idx_bytes(IMAGES) + b"x", "got more: the file is not what its header says"),
        (
            struct.pack(">HBB3I", 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1),
            "more than the file can hold",
        ),
    ],
)
def test_bad_files_are_named_and_explained(
    tmp_path: Path, content: bytes, message: str, gzipped: bool
) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(gzip.compress(content) if gzipped else content)
    # What a short plain file can hold is known; gzipped, the same header may be believed at first.
    expected = message if gzipped or "got 19" not in message else f"{message}|more than the file"
    with pytest.raises(ValueError, match=expected) as error:
        read_idx(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("length", [10, 30, -9, -1])
def test_a_gzip_file_that_is_cut_short_is_explained(tmp_path: Path, length: int) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx_bytes(IMAGES))[:length])
    with pytest.raises(ValueError, match="cut short or damaged"):
        read_idx(path)


def test_a_damaged_gzip_file_is_explained(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(idx_bytes(IMAGES)))
    content[-6] ^= 255
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cut short or damaged \(CRC check failed"):
        read_idx(path)
