"""From checkpoints back to runs."""

from __future__ import annotations

import torch

from labelproof.training.checkpoint import Checkpoint, all_tensors


def test_what_an_earlier_version_kept_of_a_loss_is_passed_over() -> None:
    of_a_loss = ("_weight", "_temperature", "base.class_weight", "vector")
    state = {f"algorithm.loss.{name}": torch.zeros(()) for name in of_a_loss}
    kept = {"algorithm.weight": torch.ones(()), "feed.order": torch.arange(3)}
    kept["network1.head.vector"] = torch.ones(2)  # a network may call its parameters what it likes
    checkpoint = Checkpoint({"head.weight": torch.eye(2)}, state | kept, {})
    found = all_tensors(checkpoint, kept="network0.")
    assert found.keys() == {"network0.head.weight", *kept}
