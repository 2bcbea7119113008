"""`labelproof review`: look at suspicious labels one by one, and decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import labelproof
from labelproof.cli.console import terminal, told
from labelproof.cli.options import takes


@takes("review")
def review(folder: Path, **given: Any) -> None:
    """Review the suspects of an audit in the browser, one key per decision.

    For example:

        labelproof review photos-audit

        labelproof review photos-audit --export reviewed.csv

    K keeps the label, A accepts the suggestion, C chooses another class, U leaves the sample out of
    training as unsure, Z undoes the last decision. Each decision is saved at once; Ctrl-C ends the
    review, and the same command resumes it.

    The exported table has one row per sample: sample, given, label, decision. Unsure samples have
    an empty label.

    The server accepts connections from this machine only. From another machine, forward the port
    under the same number: ssh -L 8000:127.0.0.1:8000 HOST, and use --port 8000 there.

    Args:
        folder: The folder of an audit, or of a run with one.
        open_page: Open the page in a browser. Other users of this machine may then see its address
            in the process list, and open the review with it.
        export: Write the decisions to this CSV file (- for stdout) instead of serving.
    """
    with told():
        labelproof.review(folder, **given, progress=terminal())
