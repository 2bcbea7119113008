"""Tables as people have them, from `fit` to what `predict` says about new rows."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

GERMAN = ("--decimal", ",", "--thousands", ".")
SMALL = ("--epochs", "2", "--device", "cpu", "--network", "mlp(hidden=8,depth=1)")


def rows(number: int) -> list[list[str]]:
    """Customers whose label the amount tells, written as in Germany."""
    amounts = np.random.default_rng(0).uniform(200, 2000, number)
    written = [f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) for amount in amounts]
    return [
        [f"C{index}", text, ["a", "b"][index % 2], "yes" if amount > 1000 else "no"]
        for index, (text, amount) in enumerate(zip(written, amounts, strict=True))
    ]


def write(path: Path, table: list[list[str]]) -> Path:
    lines = [["customer_id", "amount", "plan", "churned"], *table]
    text = "\n".join(";".join(line) for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("messy")
    table = write(folder / "customers.csv.gz", rows(60))
    options = ("--label", "churned", "--drop", "PLAN", "--output", folder / "run", "--no-audit")
    result = labelproof("fit", table, *options, *SMALL, *GERMAN)
    assert result.exit_code == 0, result.output
    return folder / "run", result.stdout


def test_predictions_can_be_joined_by_a_column(run: tuple[Path, str], tmp_path: Path) -> None:
    new = write(tmp_path / "new.csv", rows(3))
    result = labelproof("predict", run[0], new, "--id", "customer_id")
    assert result.exit_code == 0, result.output
    header, *lines = csv.reader(result.stdout.splitlines())
    assert header == ["path", "row", "customer_id", "label", "probability"]
    assert [line[1:3] for line in lines] == [["line 2", "C0"], ["line 3", "C1"], ["line 4", "C2"]]
    # Without it, the table is as it was; and a column that was dropped need not be there.
    new.write_text("amount;x\n982,75;1\n")
    plain = labelproof("predict", run[0], new).stdout.splitlines()
    assert plain[0] == "path,row,label,probability"
    wrong = labelproof("predict", run[0], new, "--id", "amonut")
    assert "did you mean 'amount'?" in str(wrong.exception)


def test_new_numbers_are_read_as_those_of_training(run: tuple[Path, str], tmp_path: Path) -> None:
    for number, text in enumerate(["amount\n982,75\n", "amount\nnine\n"]):
        (tmp_path / f"{number}.csv").write_text(text)
    assert labelproof("predict", run[0], tmp_path / "0.csv").exit_code == 0
    refused = labelproof("predict", run[0], tmp_path / "1.csv")
    assert "'nine' in line 2" in str(refused.exception)


def test_a_dry_run_names_what_is_dropped_and_whose_folder_it_is(
    run: tuple[Path, str],
) -> None:
    table = run[0].parent / "customers.csv.gz"
    options = ("--label", "churned", *GERMAN, "--output", run[0], "--dry-run")
    printed = labelproof("fit", table, *options, *SMALL, "--drop", "plan", "--seed", "7").stdout
    assert "--drop plan" in printed
    assert "# without --dry-run: " in printed
    assert "holds a run with other settings" in printed
    again = labelproof("fit", table, *options, *SMALL, "--drop", "plan").stdout
    assert "without --dry-run" not in again
