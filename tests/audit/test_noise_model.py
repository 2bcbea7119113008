from __future__ import annotations

import numpy as np
import pytest
from audit.noisy_logits import Made, make, pair, softmax, symmetric, temperature_of

from labelproof.audit.noise_model import NoiseModel, fit_noise_model, sure_temperature
from labelproof.audit.uncertainty import refine

SAMPLES = {3: 4000, 10: 5000}
KINDS = {
    "symmetric": lambda classes: symmetric(classes, 0.3),
    "pair": lambda classes: pair(classes, 0.3),
    "none": np.eye,
}


@pytest.fixture(scope="module", params=SAMPLES)
def classes(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module", params=KINDS)
def fitted(request: pytest.FixtureRequest, classes: int) -> tuple[Made, np.ndarray, NoiseModel]:
    """Made labels, the matrix they were made by, and the model that was fitted to them."""
    transition = KINDS[request.param](classes)
    made = make(SAMPLES[classes], transition)
    return made, transition, fit_noise_model(made.logits, made.given)


def test_the_noise_comes_back(fitted: tuple[Made, np.ndarray, NoiseModel]) -> None:
    made, transition, model = fitted
    classes = len(transition)
    # Each row has pseudo-counts, one of them off the diagonal.
    assert model.noise_rate == pytest.approx(made.rate, abs=0.01 + classes / len(made.given))
    # Four standard deviations of a share among a class's samples, and a few of them in doubt.
    a_class = len(made.given) / classes
    bound = 4 * np.sqrt(transition * (1 - transition) / a_class) + 6 / a_class + 0.01
    assert (np.abs(model.transition - transition) < bound).all()


def test_nothing_explains_the_labels_better_not_even_the_truth(
    fitted: tuple[Made, np.ndarray, NoiseModel],
) -> None:
    made, transition, model = fitted
    by_model, by_truth = (
        float(np.log((softmax(made.logits, heat) * matrix.T[made.given]).sum(axis=1)).mean())
        for heat, matrix in (
            (model.temperature, model.transition),
            (temperature_of(), np.maximum(transition, 1e-9)),
        )
    )
    # The prior costs a little, the less the more samples there are.
    assert by_model > by_truth - 1e-3 - len(transition) / len(made.given)
    assert model.likelihood < by_model


@pytest.mark.parametrize(("classes", "deviation"), [(3, 2.5), (10, 1.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_temperature_comes_back(kind: str, classes: int, deviation: float) -> None:
    # Of logits that leave a doubt: without one, any temperature that is low enough will do.
    made = make(6000, KINDS[kind](classes), deviation=deviation)
    found = fit_noise_model(made.logits, made.given).temperature
    assert found == pytest.approx(temperature_of(deviation=deviation), rel=0.3)


@pytest.mark.parametrize("factor", [5.0, 0.3])
def test_it_does_not_matter_how_sure_the_network_claims_to_be(factor: float) -> None:
    made = make(4000, pair(10, 0.25))
    plain = fit_noise_model(made.logits, made.given)
    other = fit_noise_model(made.logits * np.float32(factor), made.given)
    assert other.noise_rate == pytest.approx(plain.noise_rate, abs=0.005)
    assert other.temperature == pytest.approx(plain.temperature * factor, rel=0.2)
    np.testing.assert_allclose(other.transition, plain.transition, atol=0.01)


def test_the_order_of_the_classes_does_not_matter() -> None:
    transition = pair(6, 0.3)
    transition[2] = [0.1, 0.0, 0.6, 0.1, 0.1, 0.1]
    made = make(3000, transition)
    order = np.random.default_rng(1).permutation(6)
    place = np.argsort(order)
    plain = fit_noise_model(made.logits, made.given)
    permuted = fit_noise_model(made.logits[:, order], place[made.given])
    np.testing.assert_allclose(
        permuted.transition, plain.transition[np.ix_(order, order)], atol=1e-3
    )
    assert permuted.temperature == pytest.approx(plain.temperature, rel=1e-3)


def corner(name: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    made = make(300, symmetric(4, 0.2))
    logits, given = made.logits.copy(), made.given.copy()
    hidden = np.finfo(np.float32).min
    if name == "a class that is never given":
        given[given == 2] = 1
    elif name == "a class that is never predicted":
        logits[:, 2] = -50
    elif name == "a class that neither occurs nor is predicted":
        logits[:, 3], given = -50, given % 3
    elif name == "one sample a class":
        logits, given = 3 * np.eye(7), np.arange(7)
    elif name == "two classes":
        made = make(200, symmetric(2, 0.2))
        logits, given = made.logits, made.given
    elif name == "all labels the same":
        given = np.full(300, 3)
    elif name == "all predictions the same":
        logits = np.tile([0.0, 1.0, 2.0, 3.0], (300, 1))
    elif name == "no prediction at all":
        logits = np.zeros((300, 4))
    elif name == "a single sample":
        logits, given = logits[:1], given[:1]
    elif name == "a single sample with the other label":
        logits, given = np.array([[9.0, 0.0]]), np.array([1])
    elif name == "every label wrong":
        logits, given = 9 * np.eye(4)[made.true], (made.true + 1) % 4
    elif name == "classes that are ruled out":
        logits[generator.random(logits.shape) < 0.3] = -np.inf
        logits[np.arange(300), made.true] = 5
    elif name == "classes that are hidden":
        logits[generator.random(logits.shape) < 0.3] = hidden
        logits[np.arange(300), made.true] = -hidden
    elif name == "logits of a thousand":
        logits *= 1000
    return logits.astype(np.float32), given.astype(np.int64)


@pytest.mark.parametrize(
    "name",
    [
        "a class that is never given",
        "a class that is never predicted",
        "a class that neither occurs nor is predicted",
        "one sample a class",
        "two classes",
        "all labels the same",
        "all predictions the same",
        "no prediction at all",
        "a single sample",
        "a single sample with the other label",
        "every label wrong",
        "classes that are ruled out",
        "classes that are hidden",
        "logits of a thousand",
    ],
)
def test_corners_give_numbers_and_no_warning(name: str) -> None:
    logits, given = corner(name)
    sure = sure_temperature(logits)
    assert 0.05 <= sure <= 20
    for model in (fit_noise_model(logits, given), fit_noise_model(logits, given, temperature=sure)):
        refined, chance = refine(logits, given, model)
        for each in (model, refined):
            np.testing.assert_allclose(each.transition.sum(axis=1), 1)
            assert np.isfinite([each.temperature, each.likelihood]).all()
            assert 0 <= each.noise_rate <= 1
            assert each.joint.min() >= 0
            assert each.joint.sum() == pytest.approx(1, abs=1e-4)
        assert 0 <= chance.rate < np.inf
        assert ((chance.low >= 0) & (chance.low <= refined.transition)).all()
        assert ((refined.transition <= chance.high) & (chance.high <= 1)).all()
        assert (chance.high > chance.low).all()


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
@pytest.mark.parametrize(("classes", "samples"), [(3, 1000), (10, 6000)])
def test_intervals_hold_the_true_matrix_and_rate(kind: str, classes: int, samples: int) -> None:
    transition = KINDS[kind](classes)
    held, rates = [], []
    for seed in range(8):
        made = make(samples, transition, scale=4, seed=seed)
        model, chance = refine(made.logits, made.given, fit_noise_model(made.logits, made.given))
        held.append(((chance.low <= transition) & (transition <= chance.high))[transition > 0])
        rates.append((model.noise_rate - made.rate) / chance.rate**0.5)
    assert np.mean(held) > 0.87
    assert np.abs(rates).max() < 3.5
    assert 0.3 < np.std(rates) < 1.8


def test_a_part_of_the_samples_is_enough_to_start_from() -> None:
    transition = symmetric(10, 0.2)
    made = make(60_000, transition, scale=4)
    part = slice(0, 20_000)
    start = fit_noise_model(made.logits[part], made.given[part])
    from_part, chance = refine(made.logits, made.given, start)
    from_all, _ = refine(made.logits, made.given, fit_noise_model(made.logits, made.given))
    assert from_part.noise_rate == pytest.approx(from_all.noise_rate, abs=0.3 * chance.rate**0.5)
    assert ((chance.low <= transition) & (transition <= chance.high)).mean() > 0.85


def test_classes_with_few_samples_are_too_few_to_tell() -> None:
    made = make(60, pair(6, 0.3))
    _, chance = refine(made.logits, made.given, fit_noise_model(made.logits, made.given))
    assert (chance.low == 0).all()
    assert (chance.high == 1).all()


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_a_network_that_has_seen_the_labels_is_taken_to_be_sure(factor: float) -> None:
    plain = make(1000, symmetric(5, 0.2)).logits
    logits = plain * np.float32(factor)
    found = sure_temperature(logits)
    assert softmax(logits, found).max(axis=1).mean() == pytest.approx(0.999, abs=2e-4)
    assert found == pytest.approx(factor * sure_temperature(plain), rel=1e-3)
