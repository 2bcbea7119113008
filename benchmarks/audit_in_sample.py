"""How well a run's own audit finds wrong labels among those that the network was trained on.

    python benchmarks/audit_in_sample.py --data-root DATA       # about 10 minutes on one core

`fit` trains small networks on images with wrong labels, for one epoch to many, and the audit judges
the labels by the network's predictions: with its confidence measured on the samples that the run
held out, and with its predictions counted as nearly certain, as where nothing was held out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

import labelproof as lp
from labelproof.audit import audit_logits
from labelproof.audit.findings import Findings
from labelproof.audit.predictions import predict_trained
from labelproof.data.load import load_dataset
from labelproof.noise import corrupt, pair_matrix, symmetric_matrix

RESULTS = Path(__file__).parent / "results" / "audit-in-sample.json"
RUNS = (
    ("mnist", "symmetric:0.4", None, 1),
    ("mnist", "symmetric:0.4", None, 10),
    ("mnist", "symmetric:0.4", "ce", 25),
    ("mnist", "symmetric:0.1", None, 1),
    ("mnist", "symmetric:0.1", None, 25),
    ("mnist", "pair:0.3", None, 1),
    ("mnist", "pair:0.3", None, 25),
    ("cifar10", "symmetric:0.3", None, 12),
    ("cifar10", "pair:0.3", None, 12),
    ("cifar10", "symmetric:0.05", None, 25),
    ("cifar10", "symmetric:0.3", "ce", 25),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["measure", "table"], nargs="?", default="measure")
    parser.add_argument("--data-root", type=Path)
    options = parser.parse_args(arguments)
    if options.what == "measure":
        found = [measure(options.data_root, *run) for run in RUNS]
        RESULTS.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    content = json.loads(RESULTS.read_text(encoding="utf-8"))
    RESULTS.with_suffix(".md").write_text(table(content), encoding="utf-8")


def measure(
    root: Path | None, data: str, noise: str, loss: str | None, epochs: int, samples: int = 4000
) -> dict[str, Any]:
    """Both audits of one run."""
    train, (kind, _, rate) = load_dataset(data, root=root).train, noise.partition(":")
    images, true = np.asarray(train.images[:samples]), np.asarray(train.labels[:samples])
    matrix = (pair_matrix if kind == "pair" else symmetric_matrix)(10, float(rate))
    given = corrupt(true, matrix, seed=1).noisy
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"network": "cnn4(width=8)", "epochs": epochs, "audit": False, "progress": False}
        run = lp.fit((images, given), output=Path(folder) / "run", loss=loss, **more)
        predictions = predict_trained(run, load_dataset((images, given)))
    unseen = predictions.unseen
    assert unseen is not None
    entry = {"data": data, "noise": noise, "loss": loss or "chosen by fit", "epochs": epochs}
    wrong = (given != true)[predictions.index]
    entry |= {"wrong": float(wrong.mean()), "held": int(unseen.sum())}
    right = predictions.logits.argmax(axis=1) == true[predictions.index]
    entry["accuracy"] = float(right[unseen].mean())
    for name, mask in (("certain", np.zeros_like(unseen)), ("held out", unseen)):
        findings = audit_logits(predictions.logits, predictions.given, unseen=mask)
        entry[name] = judge(findings, wrong)
    print(entry, flush=True)
    return entry


def judge(findings: Findings, wrong: NDArray[np.bool_]) -> dict[str, float]:
    """How well the labels are ranked, and what is said of the suspects."""
    suspects = findings.suspects
    return {
        "precision": float(average_precision_score(wrong, findings.score)),
        "rate": findings.noise_rate.value,
        "suspects": len(suspects),
        "said": float(findings.score[suspects].mean()),
        "true": float(wrong[suspects].mean()),
    }


def table(content: Sequence[dict[str, Any]]) -> str:
    """One row for each run; in each cell, predictions as certain, then judged by held-out ones."""
    lines = [
        "| data | noise | loss | epochs | accuracy | average precision | estimated rate "
        "| suspects said to be wrong | suspects that are wrong |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for run in content:
        before, after = run["certain"], run["held out"]
        cells = [f"{run[name]}" for name in ("data", "noise", "loss", "epochs")]
        cells.append(f"{run['accuracy']:.1%}")
        cells.append(f"{before['precision']:.3f} → {after['precision']:.3f}")
        cells += [f"{before[name]:.1%} → {after[name]:.1%}" for name in ("rate", "said", "true")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
