"""Collapse is seen in runs that collapse, and in no others."""

import itertools

import pytest
from made_trials import made
from small_runs import load_small, small, small_digits, train

from labelproof.losses import parse_loss
from labelproof.training import Job, choose_examples
from labelproof.tuning import Trial, back_off, collapse
from labelproof.tuning.collapse import Watch, hopeless

NETWORK = "mlp(hidden=32,depth=1,batch_norm=true)"
DIGITS = small_digits(400, 0)


def seen_at(loss: str, *, rate: float = 0.1) -> int | None:
    """After how many epochs a real run is taken for collapsed."""
    how = {"network": NETWORK, "epochs": 8, "validation": 0.3}
    configuration = small(loss=loss, learning_rate=rate, **how)
    curve: dict[str, list[float]] = {"validation_accuracy": [], "predicted_classes": []}
    for event in train(Job(configuration), load=lambda each: choose_examples(each, DIGITS)):
        if event.kind == "epoch":
            for name, values in curve.items():
                values.append(event.value[name])
            if collapse(curve, classes=10):
                return event.value["epoch"] + 1
    return None


def test_a_penalty_that_is_too_strong_is_seen_within_five_epochs() -> None:
    slow = "ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.3,normalize=false)"
    assert seen_at("ce+sr(tau=0.5,p=0.1,lambda0=50,rho=1,normalize=false)") == 5
    assert seen_at(slow, rate=0.02) == 5
    # Runs that learn are never taken for collapsed; the first two epochs of one have one class.
    growing = "ce+sr(tau=0.1,p=0.1,lambda0=4,rho=2,r=5,normalize=false)"
    for loss in ("ce", "ce+sr", slow, growing):
        assert seen_at(loss) is None, loss


def test_a_fall_to_one_class_is_seen_after_its_patience_and_a_slow_rise_is_none() -> None:
    for classes, rise, length in itertools.product((2, 10, 1000), (1.16, 1.5), range(1, 30)):
        rising = [min(rise**epoch, classes) for epoch in range(length)]
        curve = {"predicted_classes": rising, "validation_accuracy": [100 / classes] * length}
        assert collapse(curve, classes=classes) is None
    spread = [8.0, 9.5, 9.8, 1.3, 1.0, 1.0, 1.0, 1.0]
    accuracy = [40.0, 50.0, 55.0, 12.0, 10.0, 10.0, 10.0, 10.0]
    curve = {"predicted_classes": spread, "validation_accuracy": accuracy}
    assert "the same class" in collapse(curve, classes=10)
    early = {name: values[:7] for name, values in curve.items()}
    back = {name: [*values[2:7], 2 * values[7]] for name, values in curve.items()}
    assert collapse(early, classes=10) is collapse(back, classes=10) is None
    for name, value in (("patience", 1), ("classes", 0.5), ("patience", 2.5)):
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            collapse(curve, **{"classes": 10, name: value})


def test_backing_off_ends_below_the_rule_and_changes_the_weight_alone() -> None:
    bases, weights = ("ce", "10*nce+mae"), (0.001, 0.1234567, 7.7, 1000)
    for base, weight, p in itertools.product(bases, weights, (0.01, 0.5, 1)):
        loss = f"{base}+sr(tau=0.3,p={p},lambda0={weight:g},rho=1.2,r=2,normalize=false)"
        seen: list[float] = []
        while loss is not None:
            parsed = parse_loss(loss)
            seen.append(parsed.weight_schedule(0))
            assert parsed.weight_schedule(2) == pytest.approx(1.2 * seen[-1])
            assert (parsed.p, parsed.temperature, parsed.normalize) == (p, 0.3, False)
            assert len(seen) < 2 or seen[-1] * p < 1
            loss = back_off(loss)
        assert all(later <= 0.51 * earlier for earlier, later in itertools.pairwise(seen))
        assert seen[-1] * p <= 0.0101 or len(seen) == 1
        assert back_off(base) is back_off(f"{base}+sr(lambda0=0)") is None


EPOCHS = 20


def begun(accuracy: float, epochs: int, *, rows: int = 10_000) -> Trial:
    return made(9, [[accuracy] * epochs], rows=[rows], epochs=EPOCHS, state="waiting")


OTHERS = [made(n, [[50 + 2 * n] * EPOCHS], rows=[10_000]) for n in range(5)]


def test_a_trial_that_is_clearly_behind_is_let_go_after_its_warm_up() -> None:
    assert hopeless(begun(40.0, 12), OTHERS) is None
    why = hopeless(begun(40.0, 13), OTHERS)
    assert why == "40.0% after 13 epochs, where the best had 58.0%"
    # Not before there is enough to compare with.
    assert hopeless(begun(10.0, 15), OTHERS[:4]) is None
    gone = [made(index, [[58.0] * EPOCHS], state="pruned") for index in range(9)]
    assert hopeless(begun(10.0, 15), [*OTHERS[:4], *gone]) is None
    # Few examples cannot tell near ones apart.
    for rows, apart in ((100, False), (10_000, True)):
        near = [made(number, [[57.0] * EPOCHS], rows=[rows]) for number in range(6)]
        assert (hopeless(begun(53.0, 15, rows=rows), near) is not None) == apart
    # At the same epoch.
    late = [made(index, [[20.0] * 15 + [60.0] * 5], rows=[10_000]) for index in range(5)]
    assert hopeless(begun(20.0, 15), late) is None
    assert hopeless(begun(20.0, 18), late) is not None


LEARNS = {"validation_accuracy": 80.0, "predicted_classes": 9.5}
STUCK = {"validation_accuracy": 10.0, "predicted_classes": 1.0}
ASKED = small(noise="none", validation=0.25, epochs=40)


def test_a_run_that_is_stuck_is_seen_after_its_patience() -> None:
    watch = Watch(load_small(ASKED), ASKED)
    # 150 digits in batches of 32 are five steps an epoch: 120 of them take 24.
    assert watch.patience == 24
    assert not any(watch.look(LEARNS) for _ in range(40))
    assert [watch.look(STUCK) is not None for _ in range(30)] == [False] * 23 + [True] * 7
