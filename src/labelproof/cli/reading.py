"""How data are read: what every command that learns refuses before it reads them."""

from __future__ import annotations

import shlex
from pathlib import Path

from labelproof.data.table_files import TABLES

__all__ = ["check_labels_file"]


def check_labels_file(labels: Path | None) -> None:
    """Refuse a file that is not there: it may be a column that is meant."""
    if labels is not None and labels.is_dir():
        raise IsADirectoryError(f"--labels: expected a table, got the folder {labels}")
    if labels is None or labels.exists():
        return
    meant = f"; for a column of the data say --label {shlex.quote(str(labels))}"
    raise FileNotFoundError(
        f"--labels: there is no file {labels}{meant * (labels.suffix.lower() not in TABLES)}"
    )
