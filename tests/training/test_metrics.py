"""What is summed up over an epoch, and what a run reports of it."""

from __future__ import annotations

import pytest
import torch
from small_runs import small, small_run, train_epoch

from labelproof.training.batches import Fetched
from labelproof.training.metrics import Reading, Tally

CPU = torch.device("cpu")


def test_a_tally_counts_labels_and_keeps_the_first_step_that_went_wrong() -> None:
    logits = torch.eye(3)[[0, 1, 2, 0]]
    given, clean = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 2, 1])
    fetched = Fetched(torch.zeros(4), torch.arange(4), given, clean)
    for bad in (torch.nan, torch.inf, -torch.inf):
        tally = Tally(["part"], 3, CPU)
        for value in (1.0, 2.0, bad, 3.0, torch.nan):
            tally.add(torch.tensor(value), {"part": torch.tensor(0.5)}, logits, fetched)
        counted = Reading(tally).wait()
        assert (counted.diverged, int(tally.count)) == (2, 5)
        sums = counted.sums
        del sums["train_loss"]
        assert list(sums.values()) == [10, 5, 5, 5, 10, 10]
        assert list(sums)[1:] == [
            *("clean_fitted", "wrong_fitted", "wrong_corrected", "clean_seen", "wrong_seen")
        ]


@pytest.mark.parametrize("loss", ["ce+sr", "gce(q=0.7)"])
def test_a_direct_step_reports_what_a_traced_one_does(loss: str) -> None:
    direct, traced = (small_run(small(loss=loss, network="mlp(hidden=16)")) for _ in range(2))
    assert direct.plain.direct is not None
    traced.plain.direct = None
    for _ in range(2):
        found, expected = train_epoch(direct), train_epoch(traced)
        assert found == pytest.approx(expected, rel=1e-4, abs=0.6)
        assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=1e-4)
