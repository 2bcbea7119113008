"""Who is let go before the end, and who is not."""

from __future__ import annotations

from made_trials import made

from labelproof.tuning.collapse import hopeless

EPOCHS = 20


def steady_at(accuracy: float, *, number: int = 0, rows: int = 10_000):
    return made(number, [[accuracy] * EPOCHS], rows=[rows])


def begun(accuracies: list[float], *, rows: int = 10_000):
    return made(9, [accuracies], rows=[rows], epochs=EPOCHS, state="waiting")


OTHERS = [steady_at(accuracy, number=index) for index, accuracy in enumerate([50, 52, 54, 56, 58])]


def test_a_trial_that_is_clearly_behind_is_let_go_after_its_warm_up() -> None:
    assert hopeless(begun([40.0] * 12), OTHERS) is None
    why = hopeless(begun([40.0] * 13), OTHERS)
    assert why == "40.0% after 13 epochs, where the best had 58.0%"


def test_nothing_is_let_go_before_there_is_enough_to_compare_with() -> None:
    assert hopeless(begun([10.0] * 15), OTHERS[:4]) is None
    gone = [made(index, [[58.0] * EPOCHS], state="pruned") for index in range(9)]
    assert hopeless(begun([10.0] * 15), [*OTHERS[:4], *gone]) is None


def test_few_examples_cannot_tell_near_ones_apart() -> None:
    few = [steady_at(accuracy, number=index, rows=100) for index, accuracy in enumerate([57] * 6)]
    assert hopeless(begun([53.0] * 15, rows=100), few) is None
    many = [steady_at(57, number=index) for index in range(6)]
    assert hopeless(begun([53.0] * 15), many) is not None


def test_others_are_compared_at_the_same_epoch() -> None:
    late = [made(index, [[20.0] * 15 + [60.0] * 5], rows=[10_000]) for index in range(5)]
    assert hopeless(begun([20.0] * 15), late) is None
    assert hopeless(begun([20.0] * 18), late) is not None
