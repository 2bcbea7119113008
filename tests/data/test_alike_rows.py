import warnings
from pathlib import Path

import numpy as np
import pytest

from labelproof.data import load_dataset
from labelproof.data.alike_rows import find_alike
from labelproof.data.notices import DataWarning

Row = tuple[str, ...]


def rows(number: int) -> list[Row]:
    """Rows that no two are alike of, the last column a label."""
    generator = np.random.default_rng(0)
    return [
        (f"{generator.random():.6f}", "abc"[generator.integers(3)], ["no", "yes"][index % 2])
        for index in range(number)
    ]


def told(
    folder: Path, table: list[Row], header: str = "size,plan,label", **options: str
) -> list[str]:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *map(",".join, table)]) + "\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        load_dataset(path, label="label", **options)  # type: ignore[arg-type]
    return [str(entry.message).removeprefix(f"{path}: ") for entry in caught]


def test_rows_with_another_label_are_counted_and_named(tmp_path: Path) -> None:
    table = rows(80)
    other = {"no": "yes", "yes": "no"}
    turned = [(*row[:2], other[row[2]]) for row in table[:20]]
    (message,) = told(tmp_path, table + turned)
    first, second = table[0][2], turned[0][2]
    assert message.startswith(
        f"40 rows found with more than one label, such as line 2 ({first}) with line 82 "
        f"({second}), line 3 ("
    )
    assert " and 18 more: all columns that are learned from agree" in message
    assert not told(tmp_path, table)


@pytest.mark.parametrize("copied", [1, 20, 80])
def test_copies_are_told_also_where_all_rows_have_one(copied: int, tmp_path: Path) -> None:
    table = rows(80)
    (message,) = told(tmp_path, table + table[:copied])
    said = "1 row is a copy of another" if copied == 1 else f"{copied} rows are copies of others"
    assert message.startswith(
        f"{said} in all columns that are learned from, such as line 82 of line 2"
    )
    assert not told(tmp_path, table + table[:copied], on_error="later")


def test_what_is_not_learned_from_does_not_tell_rows_apart(tmp_path: Path) -> None:
    table = [(f"C{number}", *row) for number, row in enumerate(rows(60) + rows(5))]
    messages = told(tmp_path, table, "customer_id,size,plan,label")
    assert [message.split(" in ")[0] for message in messages[1:]] == ["5 rows are copies of others"]


def test_rows_in_two_splits_are_told(tmp_path: Path) -> None:
    table = [(*row, "train") for row in rows(60)] + [(*row, "test") for row in rows(3)]
    (message,) = told(tmp_path, table, "size,plan,label,split")
    assert message.startswith("3 rows found in the training split too, such as line 62 of test as")


def test_chance_is_not_told() -> None:
    generator = np.random.default_rng(0)
    assert find_alike(generator.choice(["yes", "no"], (3, 200)).tolist()) == []
    # Answers from 1 to 6 to four questions: a few rows alike in six hundred, most of them alone.
    answers = generator.integers(1, 7, (4, 600)).astype(str).tolist()
    assert len(set(zip(*answers, strict=True))) < 580
    assert find_alike(answers) == []
    # But twenty that were entered twice are seen in twelve such columns.
    many = generator.integers(1, 7, (12, 600)).astype(str)
    twice = np.concatenate([many, many[:, :20]], axis=1).tolist()
    assert find_alike(twice) == [[row, row + 600] for row in range(20)]
    assert find_alike([["1", "1", "2"]]) == []
    assert find_alike([]) == []
