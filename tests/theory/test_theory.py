"""The paper's statements as properties: random vectors, outputs, labels, noise and classifiers."""

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from labelproof import theory
from labelproof.losses import (
    CrossEntropy,
    GeneralizedCrossEntropy,
    Loss,
    MeanAbsoluteError,
    Outputs,
    PointwiseLoss,
    SparseRegularized,
    parse_loss,
)
from labelproof.noise import symmetric_matrix

MAE = MeanAbsoluteError()
SYMMETRIC = [MAE, *map(parse_loss, ("rce", "rce(A=-0.3)", "nce", "ngce", "negce", "negfl"))]
# Bounded, so that one-hot outputs have finite sums over labels.
BOUNDED = [MAE, *map(parse_loss, ("gce(q=0.3)", "phuber(tau=10)", "rce", "gce(q=0.5)+2*mae"))]
UNBOUNDED = list(map(parse_loss, ("ce", "fl(gamma=0.5)", "fl(gamma=2)", "sce")))
EVERY = [*SYMMETRIC[-2:], *BOUNDED, *UNBOUNDED, parse_loss("nl(expected=true)")]

examine = settings(derandomize=True, deadline=None, max_examples=12)
generators = st.integers(0, 2**32 - 1).map(lambda seed: torch.Generator().manual_seed(seed))
class_counts = st.integers(2, 6)
shares = st.floats(0, 0.95)


def draw_outputs(*shape: int, generator: torch.Generator, scale: float = 3) -> Tensor:
    return (scale * torch.randn(*shape, dtype=torch.float64, generator=generator)).softmax(dim=-1)


def draw_labels(size: int, num_classes: int, generator: torch.Generator) -> Tensor:
    return torch.randint(num_classes, (size,), generator=generator)


def draw_permuted(vector: Tensor, *shape: int, generator: torch.Generator) -> Tensor:
    permutations = theory.permutation_set(vector)
    return permutations[torch.randint(len(permutations), shape, generator=generator)]


def draw_near_one_hot(
    *shape: int, num_classes: int, epsilon: float, generator: torch.Generator
) -> Tensor:
    chosen = torch.randint(num_classes, shape, generator=generator)
    peak = torch.eye(num_classes, dtype=torch.float64)[chosen]
    # Every output lies on the line from its one-hot vector to some other point of the simplex.
    towards = draw_outputs(*shape, num_classes, generator=generator) - peak
    length = torch.linalg.vector_norm(towards, dim=-1, keepdim=True)
    reach = epsilon * torch.rand(*shape, 1, dtype=torch.float64, generator=generator)
    return peak + towards * (reach / length).clamp_max(1)


def label_sums(loss: Loss, outputs: Tensor) -> Tensor:
    return loss.label_values(Outputs(outputs.log())).sum(dim=1)


@given(generators, class_counts)
@examine
def test_no_loss_has_a_gap_on_a_permutation_set_and_symmetric_ones_nowhere(generator, num_classes):
    outputs = draw_outputs(50, num_classes, generator=generator)
    for loss in SYMMETRIC:
        assert theory.symmetry_gap(loss, outputs) < 1e-8
    permutations = theory.permutation_set(outputs[0])
    for loss in EVERY:
        assert theory.symmetry_gap(loss, permutations) < 1e-8


def test_other_losses_have_a_gap_which_may_be_infinite():
    outputs = draw_outputs(50, 4, generator=torch.Generator().manual_seed(0))
    for loss in (*UNBOUNDED, *BOUNDED[1:3]):
        sums = label_sums(loss, outputs)
        assert theory.symmetry_gap(loss, outputs) == sums.max() - sums.min() > 0.1
    assert theory.symmetry_gap(CrossEntropy(), torch.eye(3)) == math.inf
    assert theory.symmetry_gap(GeneralizedCrossEntropy(), torch.eye(3)) == 0


@given(generators, class_counts)
@examine
def test_distance_is_the_smallest_over_the_permutation_set(generator, num_classes):
    outputs = draw_outputs(20, num_classes, generator=generator)
    for vector in (draw_outputs(num_classes, generator=generator), torch.eye(num_classes)[0]):
        permutations = theory.permutation_set(vector.double())
        expected = torch.cdist(outputs, permutations).amin(dim=1)
        torch.testing.assert_close(theory.permutation_distance(outputs, vector=vector), expected)
    torch.testing.assert_close(theory.permutation_distance(outputs), expected)


@given(generators, class_counts, st.floats(0.5, 0.999))
@examine
def test_confident_outputs_are_near_one_hot(generator, num_classes, confidence):
    rest = draw_outputs(50, num_classes - 1, generator=generator) * (1 - confidence)
    outputs = torch.cat([torch.full((50, 1), confidence, dtype=torch.float64), rest], dim=1)
    epsilon = theory.confidence_epsilon(confidence)
    assert bool((theory.permutation_distance(outputs) <= epsilon + 1e-12).all())
    furthest = torch.tensor([confidence, 1 - confidence, 0])
    assert float(theory.permutation_distance(furthest)) == pytest.approx(epsilon, rel=1e-4)


@given(generators, class_counts)
@examine
def test_risks_are_expectations_over_labels(generator, num_classes):
    outputs = draw_outputs(4, num_classes, generator=generator)
    labels = draw_labels(4, num_classes, generator)
    transition = draw_outputs(num_classes, num_classes, generator=generator)
    for loss in EVERY:
        every = torch.stack(
            [loss.per_example(outputs.log(), labels * 0 + seen) for seen in range(num_classes)], 1
        )
        clean = float(every.gather(1, labels[:, None]).mean())
        assert float(theory.risk(loss, outputs, labels)) == pytest.approx(clean)
        found = theory.noisy_risk(loss, outputs, labels, transition=transition)
        assert float(found) == pytest.approx(float((transition[labels] * every).sum() / 4))


@given(generators, class_counts, shares)
@examine
def test_theorem_1_noise_keeps_the_best_on_a_permutation_set(generator, num_classes, share):
    rate = share * (1 - 1 / num_classes)
    vector = draw_outputs(num_classes, generator=generator)
    classifiers = draw_permuted(vector, 30, 8, generator=generator)
    labels = draw_labels(8, num_classes, generator)
    transition = torch.from_numpy(symmetric_matrix(num_classes, rate))
    for loss in EVERY:
        clean = theory.risk(loss, classifiers, labels)
        noisy = theory.noisy_risk(loss, classifiers, labels, transition=transition)
        line = theory.noisy_risk_line(loss, vector=vector, rate=rate)
        torch.testing.assert_close(noisy, line.slope * clean + line.intercept)
        best = clean <= clean.min() + 1e-9
        assert torch.equal(noisy <= noisy.min() + line.slope * 1e-9, best)


def test_cross_entropy_is_misled_by_noise_when_outputs_are_free():
    one_hot = (torch.eye(3), torch.arange(3))
    transition = torch.from_numpy(symmetric_matrix(3, 0.1))
    assert theory.risk(CrossEntropy(), *one_hot) == 0  # a label that cannot come costs nothing
    assert theory.noisy_risk(CrossEntropy(), *one_hot, transition=transition) == math.inf
    # A right and sure classifier against a wrong and hesitant one.
    classifiers = torch.tensor([[[0.998, 0.001, 0.001]], [[0.3, 0.4, 0.3]]])
    labels, transition = torch.tensor([0]), torch.from_numpy(symmetric_matrix(3, 0.4))
    for loss, misled in ((CrossEntropy(), True), (MAE, False)):
        clean = theory.risk(loss, classifiers, labels)
        noisy = theory.noisy_risk(loss, classifiers, labels, transition=transition)
        assert clean.argmin() == 0
        assert bool(noisy.argmin() == 1) is misled


def test_a_rate_that_leaves_no_slope_has_no_factor():
    for num_classes in (2, 3, 7, 10, 100):
        vector, threshold = torch.eye(num_classes)[0], (num_classes - 1) / num_classes
        for rate, tolerable in ((0, True), (threshold - 1e-6, True), (threshold, False)):
            line = theory.noisy_risk_line(MAE, vector=vector, rate=rate)
            assert (line.slope > 1e-9) is tolerable
        assert theory.noise_factor(threshold - 1e-6, num_classes=num_classes) > 0
        with pytest.raises(ValueError, match="rate"):
            theory.noise_factor(threshold, num_classes=num_classes)


@given(generators, class_counts)
@examine
def test_theorem_2_asymmetric_noise_keeps_a_classifier_of_risk_0(generator, num_classes):
    one_hot = torch.eye(num_classes, dtype=torch.float64)
    labels = draw_labels(8, num_classes, generator)
    classifiers = torch.cat(
        [one_hot[labels].unsqueeze(0), draw_permuted(one_hot[0], 40, 8, generator=generator)]
    )
    wrong = torch.rand(num_classes, num_classes, dtype=torch.float64, generator=generator)
    wrong.fill_diagonal_(0)
    transition = wrong + torch.diag(1.01 * wrong.amax(dim=1))
    transition = transition / transition.sum(dim=1, keepdim=True)
    assert theory.transition_is_tolerable(transition)
    for loss in BOUNDED:
        assert theory.loss_is_bounded(loss, vector=one_hot[0])
        noisy = theory.noisy_risk(loss, classifiers, labels, transition=transition)
        assert theory.risk(loss, classifiers, labels)[noisy.argmin()] < 1e-12


class _HalfIsEnough(PointwiseLoss):
    def pointwise(self, log_probability: Tensor) -> Tensor:
        return (0.5 - log_probability.exp()).clamp_min(0)


def test_theorem_2_needs_the_right_label_in_the_majority_and_a_small_range():
    transition = torch.tensor([[0.4, 0.6], [0.0, 1.0]])
    assert not theory.transition_is_tolerable(transition)
    classifiers, labels = torch.eye(2).unsqueeze(1), torch.tensor([0])
    noisy = theory.noisy_risk(MAE, classifiers, labels, transition=transition)
    assert noisy.argmin() == 1
    assert not any(theory.loss_is_bounded(loss, vector=torch.eye(4)[0]) for loss in UNBOUNDED)
    # Two labels without cost leave more than C / (k - 1) to the third.
    vector = torch.tensor([0.5, 0.5, 0.0])
    assert not theory.loss_is_bounded(_HalfIsEnough(), vector=vector)
    negative = _LessProbability(0, 1)
    assert not theory.loss_is_bounded(negative, vector=torch.tensor([0.6, 0.3, 0.1]))


def excess_risk(loss: Loss, classifiers: Tensor, labels: Tensor, rate: float) -> Tensor:
    """Clean risk of the best on noisy labels above that of the best on clean ones."""
    transition = torch.from_numpy(symmetric_matrix(classifiers.shape[-1], rate))
    clean = theory.risk(loss, classifiers, labels)
    noisy = theory.noisy_risk(loss, classifiers, labels, transition=transition)
    return clean[noisy.argmin()] - clean.min()


@given(generators, class_counts, st.floats(0, 1.2))
@examine
def test_deviation_near_one_hot_is_the_largest_and_is_reached(generator, num_classes, epsilon):
    outputs = draw_near_one_hot(500, num_classes=num_classes, epsilon=epsilon, generator=generator)
    assert bool((theory.permutation_distance(outputs) <= epsilon + 1e-12).all())
    peak = torch.eye(num_classes, dtype=torch.float64)[:1]
    evenly = peak - 1 / num_classes
    extreme = peak - evenly * min(epsilon / float(torch.linalg.vector_norm(evenly)), 1)
    for loss in BOUNDED:
        delta = theory.one_hot_deviation(loss, epsilon=epsilon, num_classes=num_classes)
        deviation = label_sums(loss, peak) - label_sums(loss, outputs)
        assert deviation.max() <= delta + 1e-9
        assert deviation.min() >= -1e-9  # to one side only, so half of the paper's bound holds too
        reached = float(label_sums(loss, peak) - label_sums(loss, extreme))
        assert reached == pytest.approx(delta, abs=1e-9)


@given(generators, class_counts, shares, st.floats(0, 1))
@examine
def test_theorem_3_noise_costs_at_most_the_bound_and_the_factor_times_the_gap(
    generator, num_classes, share, epsilon
):
    rate = share * (1 - 1 / num_classes)
    labels = draw_labels(3, num_classes, generator)
    near = draw_near_one_hot(60, 3, num_classes=num_classes, epsilon=epsilon, generator=generator)
    for loss in BOUNDED:
        bound = theory.risk_bound(loss, rate=rate, epsilon=epsilon, num_classes=num_classes)
        assert excess_risk(loss, near, labels, rate) <= bound / 2 + 1e-9
    free = draw_outputs(60, 3, num_classes, generator=generator)
    factor = theory.noise_factor(rate, num_classes=num_classes)
    for loss in EVERY:
        gap = theory.symmetry_gap(loss, free)
        assert excess_risk(loss, free, labels, rate) <= factor * gap + 1e-9


def test_unbounded_losses_have_no_bound_near_one_hot_and_others_are_refused():
    for loss in UNBOUNDED:
        for epsilon in (0, 1e-9, 0.1):
            assert theory.one_hot_deviation(loss, epsilon=epsilon, num_classes=5) == math.inf
            assert theory.risk_bound(loss, rate=0.2, epsilon=epsilon, num_classes=5) == math.inf
        assert theory.risk_bound(loss, rate=0, epsilon=0.1, num_classes=5) == 0
    plain = {"temperature": 1, "p": 0.5, "weight": 1, "normalize": False}
    for loss in (GeneralizedCrossEntropy(clamp=1e-7), SparseRegularized(MAE, **plain)):
        with pytest.raises(ValueError, match="expected a sum over labels that is convex"):
            theory.one_hot_deviation(loss, epsilon=0.1, num_classes=10)


@given(generators, class_counts, st.floats(0, 30), st.floats(0.01, 1), st.floats(0.1, 2))
@examine
def test_gradient_terms_add_up_to_the_gradient(generator, num_classes, weight, p, temperature):
    logits = 3 * torch.randn(7, num_classes, dtype=torch.float64, generator=generator)
    target = draw_labels(7, num_classes, generator)
    loss = SparseRegularized(
        CrossEntropy(reduction="sum"), temperature, p, weight=weight, normalize=False
    )
    (expected,) = torch.autograd.grad(loss(logits.requires_grad_(), target), logits)
    terms = theory.gradient_terms(
        logits.detach(), target, weight=weight, p=p, temperature=temperature
    )
    torch.testing.assert_close(sum(terms), expected, rtol=1e-9, atol=1e-9)
    # A softmax does not see a shift of its logits, so each term is blind to it by itself.
    for term in terms:
        torch.testing.assert_close(term.sum(dim=1), torch.zeros(7, dtype=torch.float64))


def test_gradient_terms_are_finite_and_fitting_turns_away_where_the_weight_is_large():
    extreme = torch.tensor([[0.0, 3e4, -3e4], [0.0, 0.0, -torch.inf]])
    for logits, label in itertools.product((extreme, extreme.bfloat16()), range(3)):
        target = torch.full((2,), label)
        for term in theory.gradient_terms(logits, target, weight=10, p=0.01, temperature=0.1):
            assert term.isfinite().all()
    logits, target = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])
    turning = 1 / (0.1 * float(logits.softmax(dim=1)[0, 0]) ** 0.1)
    for weight, sign in ((0.9 * turning, -1), (1.1 * turning, 1)):
        terms = theory.gradient_terms(logits, target, weight=weight, p=0.1)
        assert terms.fitting[0, 0].sign() == sign
        assert terms.complementary[0, 0] < 0


class _LessProbability(PointwiseLoss):
    """-alpha log u_y - weight u_y, the paper's base of symmetric cross entropy."""

    def __init__(self, alpha: float, weight: float):
        super().__init__()
        self.alpha, self.linear = alpha, weight

    def pointwise(self, log_probability: Tensor) -> Tensor:
        return -self.alpha * log_probability - self.linear * log_probability.exp()


@given(generators, class_counts, st.floats(0, 10), st.floats(0, 10), st.floats(-20, -0.1))
@examine
def test_symmetric_cross_entropy_is_sparse_regularization(
    generator, num_classes, alpha, weight, log_zero
):
    logits = torch.randn(9, num_classes, dtype=torch.float64, generator=generator)
    target = draw_labels(9, num_classes, generator)
    sparse = SparseRegularized(
        _LessProbability(alpha, weight), temperature=1, p=1, weight=weight, normalize=False
    )
    symmetric = theory.as_symmetric_cross_entropy(alpha=alpha, weight=weight, log_zero=log_zero)
    logits.requires_grad_()
    values = [loss(logits, target) for loss in (sparse, symmetric)]
    torch.testing.assert_close(values[0], values[1])
    slopes = [torch.autograd.grad(value, logits)[0] for value in values]
    torch.testing.assert_close(slopes[0], slopes[1])


def test_what_cannot_be_meant_is_refused():
    foreign: Any = nn.CrossEntropyLoss()
    uniform, labels = torch.full((2, 3), 1 / 3), torch.tensor([0, 1])
    logits = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])

    def terms(target: Tensor, p: float = 0.1) -> object:
        return theory.gradient_terms(logits, target, weight=1, p=p)

    for call, argument in [
        (lambda: theory.symmetry_gap(MAE, torch.randn(4, 3)), "outputs"),
        (lambda: theory.symmetry_gap(MAE, torch.ones(3, 1)), "outputs"),
        (lambda: theory.symmetry_gap(MAE, torch.tensor([0.5, math.nan])), "outputs"),
        (lambda: theory.symmetry_gap(foreign, uniform), "loss: .*as_loss"),
        (lambda: theory.permutation_set(torch.eye(2)), "vector"),
        (lambda: theory.permutation_set(torch.arange(10)), "vector"),
        (lambda: theory.noisy_risk_line(MAE, vector=uniform, rate=0.1), "vector"),
        (lambda: theory.loss_is_bounded(MAE, vector=torch.ones(3)), "vector"),
        (lambda: theory.confidence_epsilon(0.4), "confidence"),
        (lambda: theory.risk(MAE, uniform, torch.tensor([0])), "labels"),
        (lambda: theory.risk(MAE, uniform, torch.tensor([0, 3])), "labels"),
        (lambda: theory.risk(MAE, uniform, torch.tensor([0, -1])), "labels"),
        (lambda: theory.noisy_risk(MAE, uniform, labels, transition=torch.eye(2)), "transition"),
        (lambda: theory.transition_is_tolerable(torch.ones(2, 2)), "transition"),
        (lambda: theory.noise_factor(0.1, num_classes=1), "num_classes"),
        (lambda: theory.one_hot_deviation(MAE, epsilon=-1, num_classes=3), "epsilon"),
        (lambda: terms(labels, p=0), "p:"),
        (lambda: terms(torch.tensor([0, 1, 2])), "target"),
        (lambda: terms(torch.tensor([0, 3])), "target"),
        (lambda: terms(torch.tensor([-100, 0])), "target"),
        (lambda: theory.gradient_terms(logits[0], labels, weight=1, p=0.1), "logits"),
    ]:
        with pytest.raises((TypeError, ValueError), match=argument):
            call()
