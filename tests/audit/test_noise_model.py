import math

import numpy as np
import pytest
from audit.noisy_logits import Made, draw_labels, make, pair, softmax, symmetric, temperature_of
from hypothesis import given as examples
from hypothesis import strategies as st

from labelproof.audit import noise_model
from labelproof.audit.labels import audit_logits
from labelproof.audit.least_squares import fit_least_squares
from labelproof.audit.noise_model import (
    Groups,
    NoiseModel,
    fit_noise_model,
    log_posterior,
    shift,
    warmest,
)

SAMPLES = {3: 4000, 10: 5000}
KINDS = {
    "symmetric": lambda classes: symmetric(classes, 0.3),
    "pair": lambda classes: pair(classes, 0.3),
    "none": np.eye,
}


Fitted = tuple[Made, np.ndarray, NoiseModel]


@pytest.fixture(scope="module", params=SAMPLES)
def classes(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module", params=KINDS)
def fitted(request: pytest.FixtureRequest, classes: int) -> Fitted:
    """Made labels, the matrix they were made by, and the model that was fitted to them."""
    transition = KINDS[request.param](classes)
    made = make(SAMPLES[classes], transition)
    return made, transition, fit_noise_model(made.logits, made.given)


def test_the_noise_comes_back(fitted: Fitted) -> None:
    made, transition, model = fitted
    classes = len(transition)
    # Each row has pseudo-counts, one of them off the diagonal.
    assert model.noise_rate == pytest.approx(made.rate, abs=0.01 + classes / len(made.given))
    # Four standard deviations of a share among a class's samples, and a few of them in doubt.
    a_class = len(made.given) / classes
    bound = 4 * np.sqrt(transition * (1 - transition) / a_class) + 6 / a_class + 0.01
    assert (np.abs(model.transition - transition) < bound).all()


def test_nothing_explains_the_labels_better_not_even_the_truth(fitted: Fitted) -> None:
    made, transition, model = fitted
    told = (softmax(made.logits, temperature_of()) * transition.T[made.given]).sum(axis=1)
    truth = float(np.log(np.maximum(told, 1e-30)).mean())
    # The pseudo-counts cost a little, the less the more samples there are.
    assert model.likelihood > truth - 1e-3 - len(transition) / len(made.given)


def test_the_temperature_comes_back() -> None:
    # Of logits that leave a doubt: without one, any temperature that is low enough will do.
    for classes, deviation in ((3, 2.5), (10, 1.5)):
        for transition in KINDS.values():
            made = make(6000, transition(classes), deviation=deviation)
            found = fit_noise_model(made.logits, made.given).temperature
            assert found == pytest.approx(temperature_of(deviation=deviation), rel=0.3)


def test_how_sure_the_network_claims_to_be_and_the_order_of_classes_do_not_matter() -> None:
    made = make(4000, pair(10, 0.25))
    plain = fit_noise_model(made.logits, made.given)
    for factor in (5.0, 0.3):
        other = fit_noise_model(made.logits * np.float32(factor), made.given)
        assert other.noise_rate == pytest.approx(plain.noise_rate, abs=0.005)
        assert other.temperature == pytest.approx(plain.temperature * factor, rel=0.2)
        np.testing.assert_allclose(other.transition, plain.transition, atol=0.01)
    transition = pair(6, 0.3)
    transition[2] = [0.1, 0.0, 0.6, 0.1, 0.1, 0.1]
    made = make(3000, transition)
    order = np.random.default_rng(1).permutation(6)
    place = np.argsort(order)
    plain = fit_noise_model(made.logits, made.given)
    other = fit_noise_model(made.logits[:, order], place[made.given])
    np.testing.assert_allclose(other.transition, plain.transition[np.ix_(order, order)], atol=1e-3)
    assert other.temperature == pytest.approx(plain.temperature, rel=1e-3)


def corners() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    made, two = make(300, symmetric(4, 0.2)), make(200, symmetric(2, 0.2))
    logits, given, hidden = made.logits, made.given, np.finfo(np.float32).min
    some = np.random.default_rng(0).random(logits.shape) < 0.3
    here, column = np.eye(4, dtype=bool)[made.true], np.arange(4)
    return {
        "a class that is never given": (logits, np.where(given == 2, 1, given)),
        "a class that is never predicted": (np.where(column == 2, -50, logits), given),
        "a class that is nowhere": (np.where(column == 3, -50, logits), given % 3),
        "one sample a class": (3 * np.eye(7), np.arange(7)),
        "two classes": (two.logits, two.given),
        "all labels the same": (logits, np.full(300, 3)),
        "all predictions the same": (np.tile([0.0, 1.0, 2.0, 3.0], (300, 1)), given),
        "no prediction at all": (np.zeros((300, 4)), given),
        "a single sample": (logits[:1], given[:1]),
        "a single sample with the other label": (np.array([[9.0, 0.0]]), np.array([1])),
        "every label wrong": (9 * here, (made.true + 1) % 4),
        "classes that are ruled out": (np.where(here, 5, np.where(some, -np.inf, logits)), given),
        "classes that are hidden": (np.where(here, -hidden, np.where(some, hidden, logits)), given),
        "logits of a thousand": (logits * 1000, given),
    }


def test_corners_give_numbers_and_no_warning() -> None:
    for name, (logits, given) in corners().items():
        logits, given = logits.astype(np.float32), given.astype(np.int64)
        sure = warmest(shift(logits), 0.999)
        assert 0.05 <= sure <= 20, name
        for temperature in (None, sure):
            model = fit_noise_model(logits, given, temperature=temperature)
            assert np.isfinite(model.transition).all(), name
            np.testing.assert_allclose(model.transition.sum(axis=1), 1)
            assert np.isfinite([model.temperature, model.likelihood]).all(), name
            assert 0 <= model.noise_rate <= 1, name
            assert model.joint.min() >= 0, name
            assert model.joint.sum() == pytest.approx(1, abs=1e-4), name
            fixed = temperature is not None
            squares = fit_least_squares(Groups(logits, given), model.temperature, fixed=fixed)
            assert np.isfinite(squares.transition).all(), name
            assert np.isfinite([squares.rate, squares.rate_error, squares.temperature]).all(), name
            assert min(squares.variance.min(), squares.prior.min()) >= 0, name


def test_least_squares_are_right_on_average_with_the_standard_error_of_a_count() -> None:
    true = np.arange(1000) % 4
    logits = (30 * np.eye(4)[true]).astype(np.float32)
    errors = []
    for seed in range(5):
        given = draw_labels(true, symmetric(4, 0.2), seed=seed)
        squares = fit_least_squares(Groups(logits, given), 1.0)
        assert squares.rate == pytest.approx(np.mean(given != true), abs=1e-3)
        assert squares.worth == pytest.approx([250] * 4, rel=0.01)
        errors.append(squares.rate_error)
    # In some of them halves differ by more than chance explains, by chance.
    assert np.median(errors) == pytest.approx(np.sqrt(0.2 * 0.8 / 1000), rel=0.1)
    drawn = [make(400, symmetric(40, 0.2), scale=4, seed=seed) for seed in range(12)]
    found = [fit_least_squares(Groups(one.logits, one.given), temperature_of(4)) for one in drawn]
    rates = np.array([squares.rate for squares in found])
    wrong = np.array([each.rate for each in drawn])
    assert np.mean(rates - wrong) == pytest.approx(0, abs=0.02)
    errors = np.array([squares.rate_error for squares in found])
    assert np.sqrt(np.mean((rates - 0.2) ** 2)) < 1.5 * errors.mean()
    assert errors.mean() < 0.06
    # A fit with positive entries takes chance for noise, less so with the prior.
    plain, shrunk = (
        np.mean(
            [
                fit_noise_model(
                    each.logits,
                    each.given,
                    temperature=squares.temperature,
                    prior=squares.prior * factor,
                ).noise_rate
                for each, squares in zip(drawn, found, strict=True)
            ]
        )
        for factor in (0, 1)
    )
    assert plain > shrunk + 0.02 > 0.2


def test_predictions_that_no_temperature_mends_widen_the_intervals() -> None:
    made = make(20_000, symmetric(3, 0.2), scale=4)
    biased = made.logits + np.array([1.0, 0.0, -0.5], np.float32)
    right, wrong = (
        fit_least_squares(Groups(logits, made.given), temperature_of(4))
        for logits in (made.logits, biased)
    )
    spread = np.sqrt([right.variance, wrong.variance])
    assert spread[1].mean() > 2 * spread[0].mean()
    assert (np.abs(wrong.transition - symmetric(3, 0.2)) < 2.5 * spread[1]).all()


def test_a_network_that_has_seen_the_labels_is_taken_to_be_sure() -> None:
    plain = make(1000, symmetric(5, 0.2)).logits
    for factor in (0.5, 1.0, 4.0):
        logits = plain * np.float32(factor)
        found = warmest(shift(logits), 0.999)
        assert softmax(logits, found).max(axis=1).mean() == pytest.approx(0.999, abs=2e-4)
        assert found == pytest.approx(factor * warmest(shift(plain), 0.999), rel=1e-3)


def prior(temperature: float, samples: int) -> float:
    return log_posterior(NoiseModel(np.eye(2), temperature, 0.0, np.eye(2) / 2), samples)


@examples(st.floats(0.05, 20), st.integers(1, 4_999))
def test_it_draws_towards_one_alike_from_both_sides(temperature: float, samples: int) -> None:
    assert prior(temperature, samples) <= 0 == prior(1.0, samples)
    assert prior(temperature, samples) == pytest.approx(prior(1 / temperature, samples))
    assert prior(temperature**2, samples) <= prior(temperature, samples)
    assert prior(temperature, samples + 5_000) == 0  # many samples speak for themselves


def calibrated(samples: int, seed: int) -> Made:
    """Logits that mean what they say, and labels of which 15% are wrong."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(0, 3, (samples, 4)).astype(np.float32)
    drawn = generator.random((samples, 1))
    true = (softmax(logits).cumsum(axis=1) > drawn).argmax(axis=1).astype(np.int64)
    return Made(logits, draw_labels(true, symmetric(4, 0.15), seed=seed), true)


def squared_error(made: Made) -> float:
    """Of the scores as probabilities."""
    score = audit_logits(made.logits, made.given).score
    return float(np.mean((score - (made.given != made.true)) ** 2))


def test_few_samples_are_judged_better_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [calibrated(60, seed) for seed in range(8)]
    distance = [abs(math.log(fit_noise_model(m.logits, m.given).temperature)) for m in drawn]
    error = np.mean([squared_error(made) for made in drawn])
    monkeypatch.setattr(noise_model, "_FEW", 1)
    without = [abs(math.log(fit_noise_model(m.logits, m.given).temperature)) for m in drawn]
    assert np.mean(distance) < 0.75 * np.mean(without)
    assert error < np.mean([squared_error(made) for made in drawn])
