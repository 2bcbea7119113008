"""scikit-learn: a classifier over arrays, tables and images that is robust to wrong labels."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter
from torch import nn
from typing_extensions import Self

from labelproof.fitting.recipe import choose_setting
from labelproof.integrations.estimator import (
    Admitted,
    CollapseWarning,
    admit_examples,
    admit_inputs,
    dimensions,
    make_examples,
    predict_logits,
    train_backing_off,
)
from labelproof.losses import Loss, as_loss
from labelproof.ranges import flag, whole, within
from labelproof.seeds import derive_seed
from labelproof.tabular.candidates import Candidate, Floats, SoftRows
from labelproof.tabular.committee import choose_candidates, fit_committee
from labelproof.tabular.rows import label_rows
from labelproof.training import Configuration, Examples, Execution, choose_device, choose_execution
from labelproof.tuning import DEFAULT_TRIALS, tune

__all__ = ["CollapseWarning", "RobustClassifier"]

_SETTINGS = ("network", "epochs", "batch_size", "optimizer", "learning_rate", "weight_decay")
"""Settings of `Configuration`. Setting any of them selects the network."""


class RobustClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is robust to wrong training labels.

    For rows it is the blend of classifiers that predicts held-out labels best, for images a neural
    network with a robust loss. It also makes any scikit-learn classifier robust. Rows need not be
    standardised. A pandas table may have categories, dates and missing values. Images are
    `(N, H, W)`, `(N, H, W, C)` or `(N, C, H, W)`, of bytes or of numbers from 0 to 1.

    Args:
        loss: A text such as `"gce(q=0.7)"`, a loss of this package, any module over
            (logits, target), or `"auto"` to choose one by validation on the noisy labels. An `sr`
            without arguments, as in `"ce+sr"`, has a weight that starts below the paper's bound of
            1 / p and grows fortyfold over the epochs, however many they are, and that is halved if
            the network collapses; an `sr` with arguments is used as written.
        network: A text such as `"mlp(hidden=100,depth=1)"`, or `"auto"`: one hidden layer of 100
            for rows, and for images `cnn4`, `cnn8` or `resnet18` by their size.
        estimator: `"auto"` trains linear models, kernels and forests on rows, and blends those that
            predict held-out labels best; for images, and if a setting of the network is given, it
            is the network. `"network"`, or `None`, is the network. A scikit-learn classifier whose
            `fit` takes `sample_weight` is made robust: the noise is estimated from its
            out-of-sample probabilities, and it is trained again on the probability of each true
            class.
        epochs: Passes over the training examples, or `"auto"`: 50 for images, and for rows enough
            for some hundred steps, at least 20.
        batch_size: Examples in a step, or `"auto"`: 32 to 256, by the number of examples.
        optimizer: `"sgd"`, with a momentum of 0.9, or `"adamw"`.
        learning_rate: Of the first epoch, with a cosine decay to zero; `"auto"` is 0.02 for SGD and
            0.001 for AdamW.
        weight_decay: Of all parameters, or `"auto"`: for rows the more, the more features there are
            for an example; 0.001 for images.
        early_stopping: Whether to hold out a part of the examples, stop when the accuracy on their
            noisy labels no longer improves, and keep the best weights.
        validation_fraction: Share of the examples that early stopping holds out.
        n_iter_no_change: Epochs without a better score after which early stopping stops.
        class_weight: `"balanced"`, or a weight for each class; 1 by default.
        warm_start: Whether `fit` resumes from the weights of the last one.
        random_state: An integer for reproducible results; a `RandomState`; or `None`.
        device: `"auto"`, `"cpu"`, `"cuda"`, `"mps"`; `auto` is the fastest available for images,
            and the CPU for rows, whose networks are too small to gain from another device.
        n_jobs: Number of folds or trees to train in parallel, without the network; `-1` uses all
            cores.
        verbose: Whether to print a line for every epoch, or for every candidate.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of columns; of numbers in an image.
        feature_names_in_: Names of the columns, if all of them are text.
        image_shape_: Height, width and channels; only after images.
        loss_: The loss that was minimised, as text if possible.
        network_: The network, as text.
        loss_curve_: Mean loss of each epoch.
        validation_scores_: Accuracy on the held-out noisy labels after each epoch; only with early
            stopping.
        best_validation_score_: The best score of the last `fit`, that of the weights it kept.
        n_iter_: Number of epochs.
        weights_: The parameters by name, as arrays.
        estimator_: The fitted classifiers, over the encoded columns of a table. This attribute and
            those below exist only without the network, `loss_` to `weights_` only with it.
        candidates_: For each candidate by name, the `log_loss` of held-out labels, its `agreement`
            with them, and its `weight` in the blend.
        out_of_sample_proba_: Out-of-sample probabilities of the given labels of the training rows,
            as `labelproof.audit` takes them; rows with a weight of 0 are left out.
        noise_rate_: The estimated share of wrong labels.
        transition_matrix_: The probability of each label (column) for each true class (row).

    Example:
        >>> from sklearn.datasets import load_iris
        >>> features, species = load_iris(return_X_y=True)
        >>> species[::5] = 0  # a fifth of the labels is unreliable
        >>> classifier = RobustClassifier(random_state=0).fit(features, species)
        >>> classifier.predict(features[[3, 80, 120]])
        array([0, 1, 2])
    """

    # With metadata routing, groups for a splitter are passed to `fit` too.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        loss: str | nn.Module = "ce+sr",
        network: str = "auto",
        *,
        estimator: Any = "auto",
        epochs: int | str = "auto",
        batch_size: int | str = "auto",
        optimizer: str = "sgd",
        learning_rate: float | str = "auto",
        weight_decay: float | str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.loss = loss
        self.network = network
        self.estimator = estimator
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn from examples, some of whose labels may be wrong.

        Args:
            X: Rows `(N, F)`, a table, or images `(N, H, W)`, `(N, H, W, C)`, `(N, C, H, W)`.
            y: A label for each: numbers or text.
            sample_weight: The weight of each; 2 counts the example twice.
            groups: The group of each, such as a customer or a patient. Examples of one group, and
                always exact copies, stay on one side if some are held out: by `estimator`, early
                stopping or `loss="auto"`.

        Raises:
            ValueError: A setting or the data cannot be used; the message says which and why.

        Warns:
            CollapseWarning: The network predicts one class for everything.
        """
        resumes = flag("warm_start", self.warm_start) and hasattr(self, "weights_")
        stops = flag("early_stopping", self.early_stopping)
        share = within("validation_fraction", self.validation_fraction, 0, 0.9, open_low=True)
        seed = self._draw_seed()
        known = self._form if resumes else None
        kind = self._admit_kind()
        # A table's class weights are for the true classes, which are not known yet.
        balance = None if kind != "network" and dimensions(X) == 2 else self.class_weight
        admitted = admit_examples(self, X, y, sample_weight, balance, known=known, groups=groups)
        images = admitted.form.image_shape is not None
        if images and kind == "estimator":
            raise ValueError("X: expected rows (N, F) for an estimator, got images")
        if kind != "network" and not images:
            return self._fit_rows(admitted, seed)
        examples, statistics = make_examples(
            admitted,
            statistics=self._statistics if resumes else None,
            validation=share if stops else 0.0,
            seed=seed,
            tuned=self._tunes,
        )
        earlier = self.loss_curve_ if resumes else []
        setting = choose_setting(
            examples.dataset.input_shape,
            len(examples.used),
            seed=derive_seed(seed, "fit", len(earlier)),
            **{name: getattr(self, name) for name in _SETTINGS},
        )
        same = not resumes or np.array_equal(admitted.classes, self.classes_)
        if not same or (resumes and setting.network != self.network_):
            got = f"{setting.network} and {admitted.classes}"
            raise ValueError(f"warm_start: expected network and classes as before, got {got}")
        execution = choose_execution(str(self._choose_device(images=images)))
        loss, setting = self._choose_loss(examples, setting, execution)
        trained = train_backing_off(
            loss,
            setting,
            examples,
            execution,
            start=self.weights_ if resumes else None,
            patience=whole("n_iter_no_change", self.n_iter_no_change, 1) if stops else None,
            verbose=bool(self.verbose),
        )
        scores = [*(getattr(self, "validation_scores_", []) if resumes else []), *trained.scores]
        self._forget()
        self.classes_, self._form, self._statistics = admitted.classes, admitted.form, statistics
        if admitted.form.image_shape is not None:
            self.image_shape_ = admitted.form.image_shape
        self.loss_, self.network_, self.weights_ = trained.loss, setting.network, trained.weights
        self.loss_curve_ = [*earlier, *trained.losses]
        self.n_iter_ = len(self.loss_curve_)
        if scores:
            self.validation_scores_ = scores
        if trained.scores:
            # Not the best of all fits: the weights of earlier ones are lost.
            self.best_validation_score_ = max(trained.scores)
        return self

    def _admit_kind(self) -> str:
        """Whether to train the network, the candidates (`auto`), or the given `estimator`."""
        if self.estimator in (None, "network"):
            return "network"
        if self.estimator != "auto":
            admit_estimator(self.estimator)
            if self.warm_start:
                raise ValueError("warm_start: expected False with an estimator, got True")
            return "estimator"
        defaults = inspect.signature(type(self).__init__).parameters
        for name in ("loss", *_SETTINGS, "early_stopping", "warm_start"):
            if getattr(self, name) != defaults[name].default:
                return "network"
        return "auto"

    def _fit_rows(self, admitted: Admitted, seed: int) -> Self:
        """Fit the candidates, or the given estimator, to rows."""
        examples = label_rows(
            admitted.inputs,
            admitted.labels,
            admitted.classes,
            weight=admitted.weight,
            class_weight=self.class_weight,
            groups=admitted.groups,
            columns=admitted.form.columns,
            seed=seed,
        )
        candidates: list[Candidate] = (
            choose_candidates(examples, seed=seed, n_jobs=self.n_jobs)
            if self.estimator == "auto"
            else [Given(estimator=self.estimator, seed=seed, n_jobs=self.n_jobs)]
        )
        model = fit_committee(candidates, examples, n_jobs=self.n_jobs, verbose=bool(self.verbose))
        self._forget()
        self.classes_, self._form, self._model = admitted.classes, admitted.form, model
        self.candidates_, self.out_of_sample_proba_ = model.scores, model.held_out
        self.estimator_ = [trained for member in model.members for trained in member.fitted]
        self.noise_rate_ = model.noise.noise_rate
        self.transition_matrix_ = model.noise.transition
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The probability of each class for each example, `(N, C)`.

        For a network it is the softmax; otherwise it is calibrated to the true labels.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The logarithm of each class's probability, `(N, C)`."""
        logits = torch.from_numpy(self._logits(X))
        return torch.log_softmax(logits, dim=1).numpy()

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The most probable class of each example."""
        chosen = self._logits(X).argmax(axis=1)
        return self.classes_[chosen]

    def _logits(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        check_is_fitted(self)
        inputs = admit_inputs(self, X, self._form)
        if hasattr(self, "_model"):
            return np.log(self._model.predict_proba(inputs))
        device = self._choose_device(images=self._form.image_shape is not None)
        arguments = (self.network_, self.weights_, inputs, self._statistics)
        return predict_logits(*arguments, len(self.classes_), device)

    def _forget(self) -> None:
        """Remove the attributes of an earlier fit, which may have been of another kind."""
        for name in set(vars(self)) - {"n_features_in_", "feature_names_in_"}:
            if name.endswith("_") or name in ("_model", "_statistics"):
                delattr(self, name)

    def _draw_seed(self) -> int:
        if self.random_state is None:
            # Not NumPy's global state, which belongs to the program and would be advanced.
            return int(np.random.SeedSequence().generate_state(1)[0])
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _choose_device(self, *, images: bool) -> torch.device:
        if self.device == "auto" and not images:
            return torch.device("cpu")
        return choose_device(self.device)

    @property
    def _tunes(self) -> bool:
        return isinstance(self.loss, str) and self.loss.strip().lower() == "auto"

    def _choose_loss(
        self, examples: Examples, setting: Configuration, execution: Execution
    ) -> tuple[str | Loss, Configuration]:
        if isinstance(self.loss, nn.Module):
            return as_loss(self.loss), setting
        if not isinstance(self.loss, str):
            raise TypeError(f"loss: expected a text such as 'ce+sr' or a loss, got {self.loss!r}")
        if not self._tunes:
            return self.loss, setting
        # By held-out noisy labels; the weights of examples are not used.
        search = tune(examples.dataset, setting, trials=DEFAULT_TRIALS, execution=execution)
        if search.stopped:
            raise KeyboardInterrupt
        if search.choice is None:
            raise ValueError("loss: 'auto' found no loss that trains to the end; choose one")
        return search.choice.loss, search.configuration


@dataclass
class Given(Candidate):
    """A scikit-learn classifier that the user gave, on rows that are not standardised."""

    estimator: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The name of its class."""
        return (type(_last_step(self.estimator)).__name__,)

    def _train(self, examples: SoftRows, chosen: Sequence[int]) -> Iterator[Any]:
        copy: Any = clone(self.estimator)
        unseeded = {
            name: self.seed
            for name, value in copy.get_params(deep=True).items()
            if value is None and (name == "random_state" or name.endswith("__random_state"))
        }
        yield self._classify(copy.set_params(**unseeded), examples)

    def _predict(self, model: Any, rows: Floats) -> Floats:
        return self._spread(model, model.predict_proba(rows))


def admit_estimator(estimator: Any) -> None:
    """Refuse anything but a classifier with `predict_proba` and `sample_weight`.

    Raises:
        TypeError: It is something else.

    Example:
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> admit_estimator(KNeighborsClassifier())
        Traceback (most recent call last):
            ...
        TypeError: estimator: expected 'auto', 'network', or a classifier that has predict_proba (as
        CalibratedClassifierCV gives it) and whose fit takes sample_weight, such as
        RandomForestClassifier(), got KNeighborsClassifier()
    """
    able = hasattr(estimator, "predict_proba") and not isinstance(estimator, type)
    if not able or not has_fit_parameter(_last_step(estimator), "sample_weight"):
        raise TypeError(
            "estimator: expected 'auto', 'network', or a classifier that has predict_proba (as "
            "CalibratedClassifierCV gives it) and whose fit takes sample_weight, such as "
            f"RandomForestClassifier(), got {estimator!r}"
        )


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
