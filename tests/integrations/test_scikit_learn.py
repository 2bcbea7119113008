"""The estimator keeps scikit-learn's contract, and withstands what users bring."""

import pickle
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone as _clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelproof as lp
from labelproof.fitting.recipe import Sparse, complete_loss
from labelproof.integrations import estimator, scikit_learn
from labelproof.integrations.scikit_learn import CollapseWarning

pandas = pytest.importorskip("pandas")
clone: Any = _clone


def small(**options: Any) -> Any:
    """A classifier that is fitted in a blink."""
    chosen: Any = {"network": "mlp(hidden=16,depth=1)", "epochs": 8, "learning_rate": 0.1}
    return lp.RobustClassifier(**(chosen | {"random_state": 0} | options))


def blobs(count: int = 90, **options: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    centers = [[0, 0], [6, 0], [0, 6]]
    made: Any = make_blobs(count, centers=centers, random_state=0, **options)
    return made[0], made[1]


def bytes_of(classifier: Any) -> list[bytes]:
    return [array.tobytes() for array in classifier.weights_.values()]


@parametrize_with_checks([small()])
def test_the_contract_of_scikit_learn_is_kept(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        # Some checks give labels that nothing predicts, and scikit-learn warns of its own data.
        warnings.simplefilter("ignore")
        check(estimator)


def test_wrong_labels_do_not_hurt_what_is_plain() -> None:
    features, clean = blobs(300)
    noisy = clean.copy()
    noisy[::3] = (noisy[::3] + 1) % 3
    for loss in ("ce+sr", lp.parse_loss("10*nce+mae")):
        classifier = small(loss=loss, epochs=15).fit(features, noisy)
        assert classifier.score(features, clean) > 0.9


def test_labels_of_text_come_back_as_text_and_the_curve_tells() -> None:
    features, labels = blobs()
    words = np.array(["cat", "dog", "eel"])[labels]
    classifier = small(loss="ce").fit(features, words)
    assert classifier.classes_.tolist() == ["cat", "dog", "eel"]
    assert set(classifier.predict(features)) <= {"cat", "dog", "eel"}
    chances = classifier.predict_proba(features)
    assert chances.shape == (90, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(chances), classifier.predict_log_proba(features), atol=1e-12)
    assert classifier.n_iter_ == len(classifier.loss_curve_) == 8
    assert classifier.loss_curve_[-1] < classifier.loss_curve_[0]
    assert not hasattr(classifier, "validation_scores_")


def test_seeds_decide_the_bytes_and_nothing_global_is_touched() -> None:
    features, labels = blobs()
    shared = np.random.RandomState(5)  # is moved on by each fit
    seeds = (0, 0, 1, shared, shared)
    first, second, *others = (bytes_of(small(random_state=s).fit(features, labels)) for s in seeds)
    assert first == second
    assert len({tuple(each) for each in (first, *others)}) == 4

    def state() -> tuple[bytes, bytes, int]:
        numpy_state: Any = np.random.get_state()
        torch_state = torch.get_rng_state().numpy().tobytes()
        return numpy_state[1].tobytes(), torch_state, torch.get_num_threads()

    before = state()
    for random_state in (None, 3):
        small(random_state=random_state).fit(features, labels).predict(features)
    assert state() == before


def test_weights_of_classes_move_the_border() -> None:
    features, labels = make_blobs(200, centers=[[0], [1]], n_features=1, random_state=0)[:2]
    plain = small(loss="ce").fit(features, labels).predict(features).mean()
    heavy = small(loss="ce", class_weight={0: 1, 1: 9}).fit(features, labels)
    assert heavy.predict(features).mean() > plain + 0.2
    rare = np.arange(200) % 10 == 0
    uneven = np.where(rare, labels, 0)
    balanced = small(loss="ce", class_weight="balanced").fit(features, uneven)
    assert balanced.predict(features).mean() > uneven.mean()


def test_early_stopping_keeps_the_best_epoch() -> None:
    features, labels = blobs(300, cluster_std=3.0)
    classifier = small(early_stopping=True, n_iter_no_change=3, epochs=40).fit(features, labels)
    scores = classifier.validation_scores_
    assert len(scores) == classifier.n_iter_ < 40
    assert classifier.best_validation_score_ == max(scores)
    assert scores.index(max(scores)) == len(scores) - 4
    shorter = clone(classifier).set_params(early_stopping=False).fit(features, labels)
    assert not hasattr(shorter, "best_validation_score_")


def test_a_warm_start_goes_on_from_the_weights() -> None:
    features, labels = blobs(300)
    options: Any = {"warm_start": True, "early_stopping": True, "loss": "ce", "epochs": 3}
    classifier = small(**options).fit(features, labels)
    best = classifier.best_validation_score_
    classifier.fit(features, np.random.default_rng(0).permutation(labels))
    assert len(classifier.validation_scores_) == classifier.n_iter_ == 6
    assert classifier.best_validation_score_ == max(classifier.validation_scores_[3:]) < best
    classifier.set_params(early_stopping=False).fit(features, labels)
    assert not hasattr(classifier, "best_validation_score_")
    options |= {"early_stopping": False, "network": "mlp(hidden=16,depth=1,batch_norm=true)"}
    classifier = small(**options).fit(features, labels)
    before = classifier.loss_curve_[-1]
    assert classifier.fit(features, labels).loss_curve_[3] < before * 2
    for shift, network in ((1, "mlp(hidden=16,depth=1)"), (0, "mlp(hidden=8,depth=1)")):
        with pytest.raises(ValueError, match="warm_start: expected network and classes"):
            classifier.set_params(network=network).fit(features, labels + shift)


def test_it_is_pickled_small_and_predicts_the_same_elsewhere() -> None:
    features, labels = blobs(2000)
    classifier = small(epochs=2).fit(features, labels)
    kept = pickle.dumps(classifier)
    assert len(kept) < 8000 < features.nbytes
    again = pickle.loads(kept)  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(features), classifier.predict_proba(features))
    assert bytes_of(again) == bytes_of(classifier)


def test_a_loss_without_a_text_is_minimised_as_it_is() -> None:
    features, labels = blobs()
    torchs = small(loss=torch.nn.CrossEntropyLoss()).fit(features, labels)
    ours = small(loss="ce").fit(features, labels)
    for name, weights in ours.weights_.items():
        np.testing.assert_allclose(torchs.weights_[name], weights, rtol=1e-3, atol=1e-5)
    moving = lp.SparseRegularized(
        lp.CrossEntropy(), weight=lp.cosine(2, 0, epochs=8), normalize=False
    )
    still = lp.SparseRegularized(lp.CrossEntropy(), weight=lp.constant(2), normalize=False)
    curves = [small(loss=loss).fit(features, labels).loss_curve_ for loss in (moving, still)]
    assert moving.epoch == 0, "the caller's loss is not moved"
    assert curves[0][0] == pytest.approx(curves[1][0], rel=1e-4)
    assert curves[0][-1] < 1
    # What it was told beside its text counts.
    features, labels = blobs(150, cluster_std=4.0)
    weight = torch.tensor([1.0, 1.0, 9.0])
    plain = small(loss=lp.CrossEntropy()).fit(features, labels).predict(features)
    heavy = small(loss=lp.CrossEntropy(weight=weight)).fit(features, labels).predict(features)
    assert (heavy == 2).sum() > (plain == 2).sum() + 20
    with pytest.raises(ValueError, match="loss: expected the reduction 'mean', got 'sum'"):
        small(loss=lp.CrossEntropy(reduction="sum")).fit(features, labels)


def test_a_penalty_that_is_too_strong_is_told_and_weakened(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = load_iris(return_X_y=True)
    written = "ce+sr(lambda0=200,normalize=false)"
    with pytest.warns(CollapseWarning, match="the same class.* a smaller lambda0"):
        classifier = small(loss=written, epochs=40).fit(features, labels)
    assert "lambda0=200," in classifier.loss_
    too_strong = partial(complete_loss, sparse=Sparse(first=200))
    monkeypatch.setattr(estimator, "complete_loss", too_strong)
    with pytest.warns(CollapseWarning, match=r"lambda0=200,.* collapsed, so ce"):
        classifier = small(epochs=30).fit(features, labels)
    assert len(np.unique(classifier.predict(features))) > 1
    assert "lambda0=200," not in classifier.loss_


def test_the_loss_is_chosen_on_noisy_labels_where_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scikit_learn, "DEFAULT_TRIALS", 2)
    features, labels = blobs()
    classifier, again = (small(loss="auto", epochs=4).fit(features, labels) for _ in range(2))
    assert classifier.loss_ in ("ce", "gce(q=0.7)")
    assert bytes_of(again) == bytes_of(classifier)


def test_a_table_may_have_categories_and_gaps_and_is_as_the_array_of_its_numbers() -> None:
    sizes = np.where(np.arange(120) == 5, np.nan, np.linspace(0, 1, 120))
    colours = ["red", "green", "blue"] * 40
    data = pandas.DataFrame({"colour": colours, "size": sizes, "count": np.arange(120) % 7})
    labels = np.where(data["colour"] == "red", "warm", "cold")
    classifier = small(epochs=15).fit(data, labels)
    assert classifier.score(data, labels) == 1
    assert classifier.n_features_in_ == 3
    assert classifier.feature_names_in_.tolist() == ["colour", "size", "count"]
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    assert (again.predict(data[:9]) == labels[:9]).all()
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(data.rename(columns={"size": "weight"}))
    with pytest.warns(UserWarning, match="valid feature names"):
        plain = classifier.predict(data.to_numpy(dtype=object))
    assert (plain == labels).all()
    features, labels = blobs()
    named = pandas.DataFrame(features, columns=["width", "height"])
    classifier = small().fit(named, pandas.Series(labels))
    assert bytes_of(classifier) == bytes_of(small().fit(features, labels))


def test_images_are_taken_as_bytes_or_as_numbers_grey_or_coloured() -> None:
    labels = np.arange(40) % 2
    images = np.random.default_rng(0).integers(0, 100, (40, 8, 8, 3), dtype=np.uint8)
    images[labels == 1, :, :4] += 100
    grey = images[..., 0]
    classifier = small(network="auto", epochs=6, learning_rate=0.02).fit(images, labels)
    assert (classifier.network_, classifier.n_features_in_) == ("cnn4", 192)
    assert classifier.score(images, labels) > 0.9
    assert classifier.score(images.transpose(0, 3, 1, 2), labels) > 0.9
    assert classifier.image_shape_ == (8, 8, 3)
    assert bytes_of(clone(classifier).fit(images / 255, labels)) == bytes_of(classifier)
    with pytest.raises(ValueError, match=r"^X: .* as the classifier"):
        classifier.predict(grey)
    classifier.set_params(network="cnn4(width=4,hidden=16)", epochs=1).fit(grey, labels)
    again = clone(classifier).fit(grey[..., np.newaxis], labels)
    assert bytes_of(again) == bytes_of(classifier)
    # It can be given rows next.
    classifier.set_params(network="auto").fit(*blobs())
    assert not hasattr(classifier, "image_shape_")
    assert classifier.n_features_in_ == 2
    with pytest.raises(ValueError, match=r"X: expected rows \(N, F\), as the classifier"):
        classifier.predict(images)
    named = pandas.DataFrame(blobs()[0], columns=["width", "height"])
    assert not hasattr(classifier.fit(named, blobs()[1]).fit(images, labels), "feature_names_in_")


# What cannot be learned from is refused in words that help.

FEATURES, LABELS = blobs(30)
UNUSABLE: list[tuple[Any, Any, str]] = [
    (FEATURES, np.zeros(30), r"^y .*at least two classes"),
    (FEATURES, np.arange(30), "^y .*labels that samples share"),
    (np.zeros((30, 2, 2, 2, 2)), LABELS, r"^X: expected \(N, H, W\)"),
    (np.zeros((0, 8, 8)), LABELS[:0], "^X: expected images"),
    (np.full((30, 8, 8), 200.0), LABELS, "^X: .* from 200 to 200"),
    (np.full((30, 8, 8), -0.5), LABELS, "numbers from 0 to 1"),
    (np.full((30, 8, 8), np.nan), LABELS, "^X: .*nan"),
    ([[1, 2], [3]], [0, 1], "inhomogeneous|setting an array"),
]


def test_data_and_weights_that_cannot_be_used_are_refused() -> None:
    for features, labels, message in UNUSABLE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(ValueError, match=message):
                small().fit(features, labels)
    with pytest.raises(ValueError, match="sample_weight: expected no negative"):
        small().fit(FEATURES, LABELS, np.full(30, -1.0))
    with pytest.raises(ValueError, match=r"^y .*at least two classes"):
        small().fit(FEATURES, LABELS, (LABELS == 1).astype(float))


def test_settings_that_cannot_be_used_are_refused_in_fit() -> None:
    stopping = {"early_stopping": True}
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"loss": "cee"}, lp.LossSyntaxError, "did you mean 'ce'"),
        ({"loss": 3}, TypeError, "loss: expected a text such as 'ce"),
        ({"network": "cnn4"}, ValueError, "network: cnn4 is for images"),
        ({"network": "mpl"}, ValueError, "did you mean 'mlp'"),
        ({"epochs": 0}, ValueError, "epochs: expected a whole number of at least 1"),
        ({"epochs": "many"}, TypeError, "epochs: expected a number"),
        ({"optimizer": "adam"}, ValueError, "did you mean 'adamw'"),
        ({"learning_rate": 0}, ValueError, "learning_rate: expected"),
        (stopping | {"validation_fraction": 0}, ValueError, "validation_fraction"),
        (stopping | {"validation_fraction": 0.001}, ValueError, "leaves none"),
        ({"early_stopping": "yes"}, TypeError, "early_stopping: expected true or false"),
        ({"class_weight": "even"}, ValueError, "class_weight"),
        ({"class_weight": {0: -1.0}}, ValueError, "class_weight: expected no negative"),
        ({"device": "abacus"}, ValueError, "device: expected auto, cpu"),
        ({"learning_rate": 1e30, "loss": "ce"}, ArithmeticError, "a lower learning rate"),
    ]
    for options, error, message in cases:
        with pytest.raises(error, match=message):
            small(**options).fit(FEATURES, LABELS)


def test_it_serves_in_pipelines_and_searches(capsys: pytest.CaptureFixture[str]) -> None:
    features, labels = blobs()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), small(epochs=3, verbose=1)),
        {"robustclassifier__loss": ["ce", "ce+sr"]},
        cv=2,
    ).fit(features, labels)
    assert search.best_score_ > 0.8
    assert capsys.readouterr().out.count("epoch 3, loss") == 5
