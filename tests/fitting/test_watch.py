import json
from pathlib import Path

import pytest
from small_runs import load_small, small

from labelproof.training.run_folder import METRICS
from labelproof.tuning.collapse import Watch

LEARNS = {"validation_accuracy": 80.0, "predicted_classes": 9.5}
STUCK = {"validation_accuracy": 10.0, "predicted_classes": 1.0}
ASKED = small(noise="none", validation=0.25, epochs=40)


@pytest.fixture
def watch() -> Watch:
    """Of a run on 150 digits in batches of 32."""
    return Watch(load_small(ASKED), ASKED)


def test_a_run_that_is_stuck_is_given_up_after_its_patience_and_said_to_be_once(
    watch: Watch,
) -> None:
    # Five steps an epoch: 120 of them take 24.
    assert watch.patience == 24
    assert not any(watch(LEARNS) for _ in range(40))
    assert watch.reason == watch.news == ""
    seen = [watch(STUCK) for _ in range(30)]
    assert seen == [False] * 23 + [True] * 7
    assert watch.news == f"The network has collapsed: {watch.reason}"
    watch.news = ""
    assert watch(STUCK)
    assert watch.news == ""


def test_epochs_before_a_stop_are_remembered_as_far_as_the_run_goes_on_from(
    watch: Watch, tmp_path: Path
) -> None:
    lines = [STUCK] * 23 + [LEARNS]
    (tmp_path / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    watch.remember(tmp_path, 23)
    assert watch.reason == ""
    assert watch(STUCK)
