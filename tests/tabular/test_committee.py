"""Any classifier becomes robust, the default chooses by noisy labels, and the contract is kept."""

import itertools
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelproof import RobustClassifier
from labelproof.noise import corrupt
from labelproof.tabular import candidates, committee
from labelproof.tabular.candidates import (
    Confirmed,
    ConfirmedKernel,
    Forest,
    Kernel,
    Linear,
    SoftRows,
)
from labelproof.tabular.rows import label_rows

Arrays = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "TREES", 10)


def robust(estimator: Any, **options: Any) -> Any:
    return RobustClassifier(estimator=estimator, random_state=0, **options)


@pytest.fixture(scope="module")
def noisy_blobs() -> Arrays:
    """Rows, labels of which 30% are wrong, those of class 0 in one direction, and the true ones."""
    made: Any = make_blobs(600, centers=[[0, 0], [4, 0], [0, 4]], random_state=0)
    matrix = np.array([[0.7, 0.3, 0.0], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]])
    return made[0], corrupt(made[1], matrix, seed=0).noisy, made[1]


@parametrize_with_checks([RobustClassifier(random_state=0)])
def test_the_contract_of_scikit_learn_is_kept(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_each_candidate_learns_from_soft_labels_and_predicts_held_out_rows() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(120, 2))
    true = (rows[:, 0] > 0).astype(int)
    soft = 0.8 * np.eye(3)[true] + 0.2 * np.eye(3)[1 - true]
    known = SoftRows(rows, soft, np.ones(120))
    parts = label_rows(rows, true, np.arange(3), seed=0).cuts[0]
    order = np.concatenate([part.validation for part in parts])
    for make in (Linear, Kernel, Forest, Confirmed, ConfirmedKernel):
        candidate = make(seed=0)
        held_out = candidate.held_out(known, parts)
        assert held_out.shape == (len(candidate.names), 120, 3)
        np.testing.assert_allclose(held_out.sum(axis=2), 1)
        assert np.mean(held_out[-1].argmax(axis=1) == true[order]) > 0.85, make
        chosen = candidate.fit(known, [0]).predict(rows)
        assert chosen.shape == (1, 120, 3)


def noisy_plane(seed: int, size: int, level: float) -> tuple[np.ndarray, np.ndarray, SoftRows]:
    """Rows and right classes for testing, and others with two labels in five wrong."""
    generator = np.random.default_rng(seed)
    rows, new = generator.normal(size=(size, 3)), generator.normal(size=(500, 3))
    true, wanted = (part[:, :2].sum(axis=1) > level for part in (rows, new))
    given = true ^ (generator.random(size) < 0.4)
    return new, wanted, SoftRows(rows, np.eye(2)[given.astype(int)], np.ones(size))


def test_a_forest_of_confirmed_labels_is_more_accurate() -> None:
    gains = []
    for seed in range(3):
        new, wanted, known = noisy_plane(seed, 600, 0.4)
        plain, *rounds = (
            np.mean(table.argmax(axis=1) == wanted)
            for each in (Forest(), Confirmed(rounds=2))
            for table in each.fit(known).predict(new)
        )
        gains.append(np.array(rounds) - plain)
    assert (np.mean(gains, axis=0) > 0.03).all()


def test_confirmed_labels_are_right_more_often_also_of_a_rare_class() -> None:
    for level in (0.0, 2.0):  # half of the rows, and one in twelve
        kept_of_class, shares = np.zeros(2), []
        for seed in range(5):
            _, _, known = noisy_plane(seed, 600, level)
            true, given = known.rows[:, :2].sum(axis=1) > level, known.labels[:, 1] > 0
            parts = label_rows(known.rows, given.astype(int), np.arange(2), seed=0).cuts[0]
            predicted = np.empty_like(known.labels)
            order = np.concatenate([part.validation for part in parts])
            predicted[order] = Kernel(sharpness=0.5, ridges=(80.0,)).held_out(known, parts)[0]
            kept = candidates._confirmed(known, predicted, shrunk=True)
            kept_of_class += np.bincount(given[kept].astype(int), minlength=2)
            shares.append(np.mean((true != given)[kept]))
        assert np.mean(shares) < 0.32, level
        assert kept_of_class.min() > 0, level


def test_a_classifier_becomes_robust_and_calibrated(noisy_blobs: Arrays) -> None:
    features, noisy, clean = noisy_blobs
    rest, labels = features[400:], clean[400:]

    def surprise(model: Any) -> float:
        return -np.log(np.maximum(model.predict_proba(rest), 1e-6))[range(200), labels].mean()

    for estimator, gain in (
        (make_pipeline(StandardScaler(), LogisticRegression()), 0.08),
        # Between versions of scikit-learn, its own accuracy differs by this.
        (RandomForestClassifier(30, random_state=0), -0.02),
    ):
        plain: Any = estimator.fit(features[:400], noisy[:400])
        classifier = robust(estimator).fit(features[:400], noisy[:400])
        assert classifier.score(rest, labels) > plain.score(rest, labels) + gain
        assert surprise(classifier) < 0.95 * surprise(plain)
        wrong = float(np.mean(noisy[:400] != clean[:400]))
        assert classifier.noise_rate_ == pytest.approx(wrong, abs=0.15)
        assert classifier.transition_matrix_[0, 1] > 0.15


def test_noisy_labels_decide_alone(noisy_blobs: Arrays, capsys: pytest.CaptureFixture[str]) -> None:
    features, noisy, clean = noisy_blobs
    classifier = RobustClassifier(random_state=0, verbose=1).fit(features[:400], noisy[:400])
    assert classifier.score(features[400:], clean[400:]) > 0.85
    table = pd.DataFrame(classifier.candidates_).T
    assert table["weight"].sum() == pytest.approx(1)
    assert table["weight"][table["log_loss"].idxmin()] > 0
    assert capsys.readouterr().out.count("log loss") >= 6
    predicted = classifier.out_of_sample_proba_
    assert np.mean(predicted.argmax(axis=1) == clean[:400]) > 0.8
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(features), classifier.predict_proba(features))
    assert len(pickle.dumps(classifier)) < 1_000_000


def test_several_jobs_come_to_the_same_and_are_for_larger_tables(
    noisy_blobs: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    features, noisy, _ = noisy_blobs
    asked, parallel = set[int | None](), candidates.Parallel
    monkeypatch.setattr(candidates, "Parallel", lambda jobs: asked.add(jobs) or parallel(jobs))

    def predict(jobs: int) -> NDArray[np.float64]:
        classifier = RobustClassifier(random_state=0, n_jobs=jobs).fit(features[:120], noisy[:120])
        return classifier.predict_proba(features)

    with parallel_config("threading"):  # which import nothing again
        alone = predict(2)
        assert asked == {None}
        monkeypatch.setattr(committee, "_TINY", 0)
        np.testing.assert_allclose(predict(2), alone)
        assert asked == {None, 2}


def test_mistakes_that_go_one_way_are_taken_back_and_no_others(noisy_blobs: Arrays) -> None:
    one_way = {
        2: np.array([[0.6, 0.4], [0.0, 1.0]]),
        3: np.array([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]]),
    }
    for classes, matrix in one_way.items():
        generator = np.random.default_rng(0)
        clean = generator.integers(classes, size=2000)
        features = 2.0 * np.eye(3)[clean] + generator.normal(size=(2000, 3))
        noisy = corrupt(clean, matrix, seed=0).noisy
        classifier = RobustClassifier(random_state=0).fit(features[:1000], noisy[:1000])
        plain = RobustClassifier(random_state=0).fit(features[:1000], clean[:1000])
        right = plain.score(features[1000:], clean[1000:])
        assert classifier.score(features[1000:], clean[1000:]) > right - 0.03
        assert np.abs(classifier.transition_matrix_ - matrix).max() < 0.2
        # What is said of training rows is about the given labels.
        predicted = classifier.out_of_sample_proba_.mean(axis=0)
        np.testing.assert_allclose(predicted, np.bincount(noisy[:1000]) / 1000, atol=0.05)
    features, _, clean = noisy_blobs
    matrix = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    for seed in range(3):
        noisy = corrupt(clean, matrix, seed=seed).noisy
        classifier = RobustClassifier(random_state=0).fit(features, noisy)
        np.testing.assert_array_equal(classifier._model.mixing, np.eye(3))


def test_a_setting_of_the_network_means_it_and_nothing_else_is_left(noisy_blobs: Arrays) -> None:
    features, noisy, _ = noisy_blobs
    classifier = robust(DecisionTreeClassifier(max_depth=3)).fit(features, noisy)
    assert not hasattr(classifier, "weights_")
    classifier.set_params(estimator="network", epochs=2).fit(features, noisy)
    assert hasattr(classifier, "weights_")
    assert not hasattr(classifier, "noise_rate_")
    plain = RobustClassifier(epochs=2, random_state=0).fit(features, noisy)
    np.testing.assert_array_equal(classifier.predict_proba(features), plain.predict_proba(features))
    for options in ({"loss": "ce"}, {"epochs": 2}, {"estimator": None, "epochs": 2}):
        chosen: Any = options
        assert hasattr(RobustClassifier(**chosen).fit(features[:90], noisy[:90]), "weights_")
    images = np.random.default_rng(0).random((20, 8, 8))
    small = RobustClassifier(network="cnn4(width=4,hidden=16)", epochs=1)
    assert hasattr(small.fit(images, np.arange(20) % 2), "weights_")


def test_tables_labels_of_text_and_rare_classes() -> None:
    generator = np.random.default_rng(0)
    colour = generator.choice(["red", "blue"], 200)
    table = pd.DataFrame({"colour": colour, "size": np.where(colour == "red", np.nan, 1.0)})
    table["day"] = pd.Timestamp("2024") + pd.to_timedelta(generator.integers(99, size=200), "D")
    labels = np.where(colour == "red", "warm", "cold").astype(object)
    labels[:40:2] = "cold"
    labels[7] = "odd"  # one row: nothing is known of it, so its label stays
    for estimator in ("auto", RandomForestClassifier(20, random_state=0)):
        classifier = robust(estimator).fit(table, labels)
        assert classifier.classes_.tolist() == ["cold", "odd", "warm"]
        assert (classifier.predict(table[50:]) == labels[50:]).all()
    two = np.where(labels == "odd", "odd", "warm")
    assert robust(LogisticRegression()).fit(table, two).classes_.tolist() == ["odd", "warm"]


def test_rows_of_a_group_stay_in_one_fold_and_unseen() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    rows[59] = rows[3]
    groups, labels = np.arange(300) // 3, np.arange(300) % 2
    examples = label_rows(rows, labels, np.arange(2), groups=groups, seed=0)
    assert examples.groups is not None
    assert [len(cut) for cut in examples.cuts] == [5, 5]
    for part in itertools.chain(*examples.cuts):
        assert not set(groups[part.train]) & set(groups[part.validation])
        assert (3 in part.train) == (59 in part.train)
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(60, 2)).repeat(10, axis=0)
    labels, groups = generator.integers(2, size=60).repeat(10), np.arange(60).repeat(10)
    classifier = RobustClassifier(random_state=0).fit(rows, labels, groups=groups)
    predicted = classifier.out_of_sample_proba_
    assert np.mean(predicted.argmax(axis=1) == labels) < 0.7


def test_a_forest_predicts_rows_whose_copies_it_has_not_seen() -> None:
    generator = np.random.default_rng(0)
    rows, given = generator.normal(size=(200, 2)), generator.integers(2, size=200)
    rows, given = rows.repeat(2, axis=0), given.repeat(2)  # labels that only a copy tells
    examples = label_rows(rows, given, np.arange(2), seed=0)
    known = SoftRows(examples.rows, examples.labels, examples.weight)
    for forest in (Forest(leaf=1, groups=examples.groups), Forest(leaf=1)):
        predicted = forest.held_out(known, examples.cuts[0])[0]
        order = np.concatenate([part.validation for part in examples.cuts[0]])
        right = np.mean(predicted.argmax(axis=1) == examples.given[order])
        assert right < 0.6 if forest.groups is not None else right > 0.8


def test_a_kernel_predicts_a_part_as_one_that_is_trained_without_it(noisy_blobs: Arrays) -> None:
    features, noisy, _ = noisy_blobs
    examples = label_rows(features, noisy, np.arange(3), seed=0)
    known = SoftRows(examples.rows, examples.labels, examples.weight)
    part = examples.cuts[0][0]
    predicted = Kernel().held_out(known, [part])
    alone = Kernel().fit(known.take(part.train)).predict(known.rows[part.validation])
    assert abs(predicted - alone).max() < 0.05
    assert abs(predicted - alone).mean() < 0.005


def test_weights_of_classes_count(noisy_blobs: Arrays) -> None:
    features, noisy, _ = noisy_blobs
    plain = robust(LogisticRegression()).fit(features, noisy)
    heavy = robust(LogisticRegression(), class_weight={2: 50.0}).fit(features, noisy)
    assert (heavy.predict(features) == 2).sum() > (plain.predict(features) == 2).sum()
    assert heavy.noise_rate_ == plain.noise_rate_


def test_what_cannot_be_used_is_refused(noisy_blobs: Arrays) -> None:
    tree = DecisionTreeClassifier()
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({"estimator": KNeighborsClassifier()}, TypeError, "estimator: .*sample_weight"),
        ({"estimator": LinearSVC()}, TypeError, "estimator: .*predict_proba"),
        ({"estimator": "forest"}, TypeError, "estimator"),
        ({"estimator": RandomForestClassifier}, TypeError, "estimator"),
        ({"estimator": tree, "warm_start": True}, ValueError, "warm_start"),
        ({"estimator": tree, "class_weight": "even"}, ValueError, "class_weight"),
        ({"estimator": tree, "class_weight": {0: -1, 1: -1}}, ValueError, "class_weight: .*no neg"),
    ]
    for options, error, message in cases:
        with pytest.raises(error, match=message):
            RobustClassifier(**options).fit(noisy_blobs[0], noisy_blobs[1])
    with pytest.raises(ValueError, match=r"X: .*images"):
        robust(tree).fit(np.zeros((20, 4, 4)), np.arange(20) % 2)


def test_a_blend_has_the_weights_that_predict_labels_best() -> None:
    even = np.full(400, 1 / 400)

    def held(first: float, last: float) -> committee.OutOfSample:
        chance = np.repeat([first, last], 200)
        return committee.OutOfSample(np.zeros((400, 2)), 1.0, chance, 0.0, 0.0)

    one_each = {(0, 0): held(0.9, 0.3), (1, 0): held(0.3, 0.9), (2, 0): held(0.2, 0.2)}
    weights = committee._blend(one_each, np.ones(len(one_each)), even)
    assert weights == pytest.approx({(0, 0): 0.5, (1, 0): 0.5}, abs=0.01)
    better = {(0, 0): held(0.8, 0.8), (0, 1): held(0.5, 0.5), (1, 0): held(0.9, 0.1)}
    assert committee._blend(better, np.ones(len(better)), even)[0, 0] > 0.9
    # However many there are, someone is left.
    many = {(number, 0): held(0.6, 0.6) for number in range(30)}
    assert sum(committee._blend(many, np.ones(len(many)), even).values()) == pytest.approx(1)


def test_an_accurate_candidate_is_preferred_although_wrong_labels_surprise_it() -> None:
    classes, size, generator = 20, 2000, np.random.default_rng(0)
    true = generator.integers(classes, size=size)
    given = np.where(generator.random(size) < 0.5, generator.integers(classes, size=size), true)
    votes = generator.integers(classes, size=(size, 6))
    votes[:, :3] = np.where(generator.random((size, 1)) < 0.9, true[:, None], votes[:, :3])
    accurate = np.eye(classes)[votes].mean(axis=1)  # as of a few trees, with many zeros
    rigid = np.eye(classes)[np.where(generator.random(size) < 0.7, true, votes[:, -1])] + 0.1
    even, compared = np.full(size, 1 / size), {}
    for number, table in enumerate((accurate, rigid)):
        predicted = committee.as_probabilities(table)
        compared[number, 0] = committee._calibrate_to_labels(predicted, given, even)
    assert compared[0, 0].agreement > compared[1, 0].agreement + 0.05
    assert committee._blend(compared, np.ones(len(compared)), even)[0, 0] > 0.7
