"""Collapse is seen in runs that collapse, and in no others."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import small, small_digits, train

from labelproof.losses import SparseRegularized, parse_loss
from labelproof.training import Configuration, Examples, Job, choose_examples
from labelproof.tuning import back_off, collapse

steady = settings(deadline=None, derandomize=True, max_examples=100)

NETWORK = "mlp(hidden=32,depth=1,batch_norm=true)"
DIGITS = small_digits(400, 0)


def load(configuration: Configuration) -> Examples:
    return choose_examples(configuration, DIGITS)


def seen_at(loss: str, *, rate: float = 0.1, epochs: int = 12) -> int | None:
    """After how many epochs a real run is taken for collapsed."""
    configuration = small(
        loss=loss, learning_rate=rate, network=NETWORK, epochs=epochs, validation=0.3
    )
    curve: dict[str, list[float]] = {"validation_accuracy": [], "predicted_classes": []}
    for event in train(Job(configuration), load=load):
        if event.kind == "epoch":
            for name, values in curve.items():
                values.append(event.value[name])
            if collapse(curve, classes=10):
                return event.value["epoch"] + 1
    return None


@pytest.mark.parametrize(
    ("loss", "rate"),
    [
        ("ce+sr(tau=0.5,p=0.1,lambda0=50,rho=1,normalize=false)", 0.1),
        ("ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.3,normalize=false)", 0.02),
    ],
)
def test_a_penalty_that_is_too_strong_is_seen_within_five_epochs(loss: str, rate: float) -> None:
    assert seen_at(loss, rate=rate) == 5


@pytest.mark.parametrize(
    "loss",
    [
        "ce",
        "gce(q=0.7)",
        "ce+sr",
        # Its first two epochs have a single class.
        "ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.3,normalize=false)",
        "ce+sr(tau=0.1,p=0.1,lambda0=4,rho=2,r=5,normalize=false)",
    ],
)
def test_a_run_that_learns_is_never_taken_for_collapsed(loss: str) -> None:
    assert seen_at(loss) is None


@steady
@given(
    st.floats(2, 1000),
    st.lists(st.floats(1.16, 1.5), min_size=5, max_size=30),
)
def test_a_slow_rise_from_a_single_class_is_given_time(classes: float, rises: list[float]) -> None:
    spread = [1.0]
    for rise in rises:
        spread.append(min(spread[-1] * rise, classes))
    for length in range(1, len(spread) + 1):
        begun = spread[:length]
        curve = {"predicted_classes": begun, "validation_accuracy": [100 / classes] * length}
        assert collapse(curve, classes=classes) is None


def test_a_fall_to_one_class_is_seen_after_its_patience() -> None:
    spread = [8.0, 9.5, 9.8, 1.3, 1.0, 1.0, 1.0, 1.0]
    accuracy = [40.0, 50.0, 55.0, 12.0, 10.0, 10.0, 10.0, 10.0]
    curve = {"predicted_classes": spread, "validation_accuracy": accuracy}
    said = collapse(curve, classes=10)
    assert said is not None
    assert "the same class" in said
    early = {name: values[:7] for name, values in curve.items()}
    assert collapse(early, classes=10) is None


def test_a_fall_and_a_recovery_are_no_collapse() -> None:
    spread = [9.0, 2.0, 1.0, 1.0, 1.0, 2.0]
    curve = {"predicted_classes": spread, "validation_accuracy": [50, 20, 10, 10, 10, 19]}
    assert collapse(curve, classes=10) is None


@pytest.mark.parametrize(("name", "value"), [("patience", 1), ("classes", 0.5), ("patience", 2.5)])
def test_what_cannot_be_meant_is_refused(name: str, value: float) -> None:
    curve = {"predicted_classes": [1.0], "validation_accuracy": [10.0]}
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        collapse(curve, **{"classes": 10, name: value})  # pyright: ignore[reportArgumentType]


@steady
@given(
    weight=st.floats(0.001, 1000),
    p=st.sampled_from([0.01, 0.1, 0.5, 1]),
    base=st.sampled_from(["ce", "gce(q=0.3)", "10*nce+mae"]),
)
def test_backing_off_ends_below_the_rule_and_changes_the_weight_alone(
    weight: float, p: float, base: str
) -> None:
    loss: str | None = f"{base}+sr(tau=0.3,p={p},lambda0={weight:g},rho=1.2,r=2,normalize=false)"
    seen: list[float] = []
    while loss is not None:
        parsed = parse_loss(loss)
        assert isinstance(parsed, SparseRegularized)
        seen.append(parsed.weight_schedule(0))
        assert parsed.weight_schedule(2) == pytest.approx(1.2 * seen[-1])
        assert (parsed.p, parsed.temperature, parsed.normalize) == (p, 0.3, False)
        assert len(seen) < 2 or seen[-1] * p < 1
        loss = back_off(loss)
    assert all(later <= 0.51 * earlier for earlier, later in itertools.pairwise(seen))
    assert seen[-1] * p <= 0.0101 or len(seen) == 1


@pytest.mark.parametrize("loss", ["ce", "gce(q=0.7)", "nce+mae", "ce+sr(lambda0=0)"])
def test_there_is_nothing_to_weaken_without_a_penalty(loss: str) -> None:
    assert back_off(loss) is None
