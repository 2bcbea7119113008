"""The whole search, on a few digits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import CPU, StopAfter, small, small_digits

from labelproof.data import Split, load_digits
from labelproof.training import Event, choose_examples
from labelproof.tuning import Search, Trial, tune
from labelproof.tuning import search as course_module
from labelproof.tuning.search import choose_validation, identify

SETTING = small(loss="ce", epochs=2)
STRONG = "ce+sr(tau=0.5,p=0.1,lambda0=80,rho=1,r=1,normalize=false)"


def run(**options: Any) -> Search:
    options = {"trials": 3, "folds": 1, "execution": CPU, **options}
    dataset = options.pop("dataset", small_digits())
    return tune(dataset, options.pop("configuration", SETTING), **options)


def seen(found: Search) -> list[tuple[int, str, str, float | None]]:
    return sorted((trial.number, trial.loss, trial.state, trial.accuracy) for trial in found.tried)


def test_the_truth_changes_nothing() -> None:
    digits = small_digits()
    given = np.roll(digits.train.labels, 1)  # as wrong as can be, for all that anyone knows
    wrong = Split(digits.train.images, given)
    plain = replace(SETTING, noise="none")
    without = replace(digits, splits={"train": wrong}, clean=False)
    with_test = replace(digits, splits={"train": wrong, "test": digits.test}, clean=True)
    assert seen(run(dataset=without, configuration=plain)) == seen(
        run(dataset=with_test, configuration=plain)
    )


def test_images_are_also_tried_with_sparse_weights_and_ones_own_losses_come_first() -> None:
    jobs: dict[float, float] = {}
    named: set[str] = set()

    def listen(event: Event | Trial) -> None:
        if isinstance(event, Event):
            jobs[event.job.configuration.l1] = event.job.configuration.weight_decay
            named.update(event.value if event.kind == "epoch" else ())

    found = run(trials=5, on_event=listen, configuration=replace(SETTING, weight_decay=1e-3))
    assert jobs == {0.0: 1e-3, 1e-4: 0.0, 5e-5: 0.0}
    assert found.trials["l1"].gt(0).sum() == 2
    penalised = next(trial for trial in found.tried if trial.l1)
    assert penalised.text == f"{penalised.loss}, l1={penalised.l1:g}"
    # Runs never hear of the test set or of clean labels.
    assert "validation_accuracy" in named
    assert not named & {"test_accuracy", "clean_fitted", "wrong_fitted", "wrong_corrected"}
    asked = run(trials=2, losses=["nce + mae", "ce"])
    assert seen(asked)[0][1] == "nce+mae"
    assert [trial.origin for trial in asked.tried] == ["asked", "asked"]


def test_a_collapse_and_a_divergence_are_let_go_and_a_weaker_penalty_follows() -> None:
    found = run(
        trials=2,
        losses=[STRONG],
        configuration=replace(SETTING, epochs=10, learning_rate=0.02, batch_size=8),
        dataset=small_digits(150, 0),
    )
    trials = sorted(found.tried, key=lambda trial: trial.number)
    assert trials[0].state == "collapsed"
    assert "the same class" in trials[0].why
    assert len(trials[0].curves[0]) < 10
    assert (trials[1].origin, trials[1].loss) == ("back-off", STRONG.replace("80", "5"))
    # Nor is what diverges ever chosen.
    found = run(trials=3, losses=["1e30*ce"], configuration=replace(SETTING, clip_norm=0))
    assert {trial.loss: trial.state for trial in found.tried}["1e30*ce"] == "failed"
    assert found.choice.state == "complete"


def test_a_stopped_search_goes_on_to_the_same_end_and_can_be_extended(tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    for steps in (1, 25, 30):  # before anything, in a trial, and in one of the next
        first = run(trials=6, folds=2, file=file, stop=StopAfter(steps))
        assert first.stopped
        assert len(first.tried) < 6
    again = run(trials=6, folds=2, file=file)
    assert not again.stopped
    assert seen(again) == seen(run(trials=6, folds=2))
    events: list[Event | Trial] = []
    run(trials=6, folds=2, file=file, on_event=events.append)
    assert events == []
    assert len(run(trials=7, folds=2, file=file).tried) == 7
    assert len(json.loads(file.read_text())["trials"]) == 7


def test_when_time_is_up_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(course_module.time, "monotonic", lambda: now[0])

    def listen(event: Event | Trial) -> None:
        if isinstance(event, Trial):
            now[0] += 60

    found = run(trials=9, seconds=90, on_event=listen)
    assert len(found.tried) == 2
    assert found.choice is not None
    assert not found.stopped


def test_all_labels_are_the_given_ones_and_each_example_is_validated_on_once() -> None:
    digits = small_digits()
    for noise, parts in (("none", 2), ("symmetric:0.4", 3), ("pair:0.2", 5)):
        configuration = small(noise=noise)
        folds = choose_validation(digits, configuration, parts=parts)
        given = choose_examples(configuration, digits).given
        for examples in folds:
            assert examples.clean is None
            assert list(examples.dataset.splits) == ["train"]
            assert not examples.dataset.clean
            np.testing.assert_array_equal(examples.dataset.train.labels, given)
            np.testing.assert_array_equal(examples.given, given)
            assert not set(examples.held) & set(examples.used)
            assert len(examples.held) + len(examples.used) == 200
        held = np.concatenate([examples.held for examples in folds])
        np.testing.assert_array_equal(np.sort(held), np.arange(200))


def test_a_large_set_holds_out_one_part_and_other_noise_is_another_search() -> None:
    digits = load_digits()
    for count, held in ((10_000, 2000), (60_000, 10_000), (200_000, 20_000)):
        images = np.broadcast_to(digits.train.array[:1], (count, 1, 8, 8))
        large = replace(digits, splits={"train": Split(images, np.arange(count) % 10)})
        (fold,) = choose_validation(large, small(noise="none"))
        assert len(fold.held) == held
    # Other noise is another search.
    prints = {
        str(identify(choose_validation(small_digits(), small(noise=noise, seed=seed))))
        for noise, seed in (("symmetric:0.4", 1), ("symmetric:0.4", 2), ("none", 1))
    }
    assert len(prints) == 3


def test_what_cannot_be_meant_is_refused() -> None:
    for name, value in (("trials", 0), ("at_once", 0), ("seconds", -1), ("folds", 0)):
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            run(**{name: value})
    for parts, name in ((0, "folds"), ("three", "folds"), (1000, "count")):
        with pytest.raises((ValueError, TypeError), match=f"^{name}: expected"):
            choose_validation(small_digits(), small(), parts=parts)
