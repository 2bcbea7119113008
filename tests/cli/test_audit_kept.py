"""What an audit leaves behind, whatever becomes of the program on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trained import labelproof

from labelproof.audit import Audit, open_samples
from labelproof.audit.folder import AUDIT, PAGE, RUNS

QUICK = ("--epochs", "1", "--network", "mlp(hidden=4,depth=1)", "--device", "cpu")


def table(path: Path, rows: int) -> Path:
    values = np.random.default_rng(0).normal(size=rows)
    lines = [f"{value:.3f},{'ab'[row % 2]}" for row, value in enumerate(values)]
    path.write_text("\n".join(["value,group", *lines]) + "\n")
    return path


def audit(file: Path, folder: Path, *more: str | Path) -> tuple[int, BaseException | None, str]:
    result = labelproof("audit", file, "--label", "group", "--output", folder, *QUICK, *more)
    return result.exit_code, result.exception, result.output


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_what_was_trained_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = table(tmp_path / "t.csv", 20), tmp_path / "audit"
    with monkeypatch.context() as context:
        context.setattr("labelproof.verbs.cross_validation.write_audit_page", killed)
        assert audit(file, folder)[0] != 0
    kept = (folder / AUDIT).read_bytes()
    # The networks are gone by now, so that nothing may put at risk what came out of them.
    assert not (folder / RUNS).exists()
    with monkeypatch.context() as context:
        context.setattr(Audit, "write", killed)
        code, _, said = audit(file, folder)
    assert code == 0, said
    assert "Finished before" in said
    assert (folder / AUDIT).read_bytes() == kept
    assert (folder / PAGE).exists()


def test_the_data_are_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    table(tmp_path / "work" / "t.csv", 20)
    (tmp_path / "work" / "labels.csv").write_text("sample,label\nline 2,\n")
    monkeypatch.chdir(tmp_path / "work")
    code, _, said = audit(Path("t.csv"), Path("audit"), "--labels", "labels.csv")
    assert code == 0, said
    monkeypatch.chdir(tmp_path)
    samples = open_samples(Audit.read(Path("work") / "audit"))
    assert samples.audit.samples[0] == "line 3"
    assert samples.cells(0)[1] == ("group", "b")
