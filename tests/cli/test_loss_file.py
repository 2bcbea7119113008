"""Losses of the user's own, in the commands that take a loss."""

from pathlib import Path

import pytest
from made_losses import CODE
from made_records import write_tiny_mnist
from trained import labelproof, labelproof_to_its_end, succeed, train_digits

from labelproof.experiments.records import RecordStore
from labelproof.verbs.run import load_run


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


def test_a_run_with_a_loss_of_ones_own_outlives_its_file(tmp_path: Path, mine: Path) -> None:
    arguments = ("--loss", "series(terms=4)+sr", "--loss-file", mine)
    result = train_digits(tmp_path / "run", *arguments, epochs=1)
    assert result.exit_code == 0, result.output
    mine.unlink()
    loss = load_run(tmp_path / "run").configuration.loss
    assert loss.startswith("series@")
    assert "(terms=4)+sr(" in loss
    succeed("evaluate", tmp_path / "run")


def test_it_joins_a_table_by_being_named(tmp_path: Path, mine: Path) -> None:
    data = write_tiny_mnist(tmp_path / "data")

    def bench(file: Path, *more: str) -> str:
        return succeed(
            *("bench", "symmetric", "--dataset", "mnist", "--columns", "0.4", "--epochs", "2"),
            *("--methods", "CE,series(terms=6)", "--loss-file", file, "--device", "cpu"),
            *("--data-root", data, "--records", tmp_path / "records"),
            *("--runs", tmp_path / "runs", *more),
        ).output

    assert "2 runs, 0 with a record" in bench(mine, "--dry-run")
    bench(mine)
    assert "2 runs, 2 with a record" in bench(mine, "--dry-run")
    # Changed, it is another loss, which has not been trained yet; the record of before stays.
    changed = tmp_path / "changed.py"
    changed.write_text(CODE.replace("/ power", "/ (power + 1)"))
    assert "2 runs, 1 with a record" in bench(changed, "--dry-run")
    losses = [record.configuration["loss"] for record in RecordStore(tmp_path / "records")]
    assert sorted(loss.partition("@")[0] for loss in losses) == ["ce", "series"]


def test_losses_lists_it_and_checks_what_is_written_with_it(mine: Path) -> None:
    listed = labelproof("losses", "--loss-file", mine)
    assert "series" in listed.stdout
    assert "Cross entropy's series, cut off." in listed.stdout
    checked = labelproof("losses", "nce+nseries(terms=3)", "--loss-file", mine)
    assert checked.stdout.startswith("nce+nseries@")


def test_a_mistake_in_it_is_one_line_before_anything_is_begun(mine: Path) -> None:
    mine.write_text("LOSSES = {'ce': 1}")
    for command in (
        ("train",),
        ("bench", "symmetric", "--dataset", "mnist"),
        *(("fit", "photos"), ("audit", "photos"), ("tune", "photos"), ("table", "symmetric")),
        ("figure", "accuracy", "--output", "accuracy.svg"),
    ):
        done = labelproof_to_its_end(*command, "--loss-file", mine)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {mine}: expected a name")
        assert done.stderr.endswith("that is not taken, got 'ce'\n")
