from __future__ import annotations

import math

import numpy as np
import pytest
from audit.noisy_logits import Made, draw_labels, softmax, symmetric
from hypothesis import given
from hypothesis import strategies as st

from labelproof.audit import noise_model
from labelproof.audit.labels import audit_logits
from labelproof.audit.noise_model import NoiseModel, fit_noise_model, log_posterior


def prior(temperature: float, samples: int) -> float:
    return log_posterior(NoiseModel(np.eye(2), temperature, 0.0, np.eye(2) / 2), samples)


@given(st.floats(0.05, 20), st.integers(1, 4_999))
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
