"""What is proposed after the trials so far."""

from __future__ import annotations

from made_trials import made

from labelproof.tuning.space import coordinates, propose, starts

EPOCHS = 20


def tried(good: str = "+sr") -> list:
    losses = starts(epochs=EPOCHS, classes=10)
    return [
        made(number, [[50.0 + 8 * (good in loss)] * EPOCHS], loss=loss)
        for number, loss in enumerate(losses)
    ]


def next_loss(trials: list, *, seed: int = 1, classes: int = 10) -> str:
    return propose(trials, epochs=EPOCHS, classes=classes, seed=seed)


def test_the_same_trials_and_seed_propose_the_same() -> None:
    assert next_loss(tried()) == next_loss(tried())
    assert len({next_loss(tried(), seed=seed) for seed in range(5)}) > 1


def test_a_proposal_is_new() -> None:
    trials = tried()
    for _ in range(8):
        loss = next_loss(trials)
        assert loss not in [trial.loss for trial in trials]
        trials.append(made(len(trials), [[58.0] * EPOCHS], loss=loss))


def test_what_was_good_is_proposed_more_often() -> None:
    sparse = [("+sr" in next_loss(tried(), seed=seed)) for seed in range(12)]
    plain = [("+sr" in next_loss(tried(good="gce(q=0.7)"), seed=seed)) for seed in range(12)]
    assert sum(sparse) > sum(plain)


def test_every_other_proposal_is_near_one_of_the_best() -> None:
    trials = tried()[:-1]
    assert len(trials) % 2
    places = [coordinates(trial.loss, epochs=EPOCHS) or {} for trial in trials]
    for seed in range(8):
        near = coordinates(next_loss(trials, seed=seed), epochs=EPOCHS)
        assert near is not None
        assert any(
            near["kind"] == place.get("kind")
            and all(0.49 < near[name] / place[name] < 2.05 for name in ("pull", "tau", "growth"))
            for place in places
            if "pull" in place
        )


def test_hard_data_is_searched_with_weak_penalties() -> None:
    for seed in range(8):
        place = coordinates(next_loss(tried(), seed=seed, classes=100), epochs=EPOCHS)
        assert place is not None
        assert place.get("pull", 0) <= 0.3 * 1.01
