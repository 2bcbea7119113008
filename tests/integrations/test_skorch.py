"""skorch: a loss of labelproof is a criterion like any other, and five lines move its schedule.

There is no module for it in this package; these tests hold what the guide and the example say.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

from labelproof import CrossEntropy, SparseRegularized, exponential, parse_loss

pytest.importorskip("skorch")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback


class MoveSchedule(Callback):
    """Tells the criterion the epoch: skorch has begun the epoch's row of the history by now."""

    def on_epoch_begin(
        self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        net.criterion_.set_epoch(len(net.history) - 1)


class NoteWeight(Callback):
    def on_batch_end(
        self, net: Any, batch: Any = None, training: bool | None = None, **kwargs: Any
    ) -> None:
        if training:
            net.history.record_batch("weight", net.criterion_.weight)


def make_loss(start: float = 1) -> SparseRegularized:
    return SparseRegularized(CrossEntropy(), weight=exponential(start, growth=2))


def data() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = np.arange(24) % 3
    inputs = generator.normal(size=(24, 3)) + 4 * np.eye(3)[labels]
    return inputs.astype(np.float32), labels


def make_net(**options: Any) -> Any:
    settings: dict[str, Any] = {
        "criterion": make_loss(),
        "callbacks": [MoveSchedule(), NoteWeight()],
        "lr": 0.1,
        "max_epochs": 3,
        "batch_size": 8,
        "train_split": None,
        "verbose": 0,
        "iterator_train__shuffle": False,
    }
    return NeuralNetClassifier(nn.Linear(3, 3), **(settings | options))


def weights(net: Any) -> list[float]:
    """The weight of each epoch, which must not move within one."""
    rows = net.history[:, "batches", :, "weight"]
    assert all(len(set(row)) == 1 for row in rows)
    return [row[0] for row in rows]


def test_the_schedule_follows_the_epochs_and_goes_on_where_it_stopped():
    net = make_net().fit(*data())
    assert weights(net) == [1, 2, 4]
    net.partial_fit(*data())
    assert weights(net) == [1, 2, 4, 8, 16, 32]
    assert weights(net.fit(*data())) == [1, 2, 4], "a fit begins anew"


def test_probabilities_need_to_be_asked_for():
    """skorch knows torch's own cross entropy by its class; any other criterion is told apart."""
    inputs, labels = data()
    silent = make_net().fit(inputs, labels)
    told = make_net(predict_nonlinearity=nn.Softmax(dim=1)).fit(inputs, labels)
    assert not np.allclose(silent.predict_proba(inputs).sum(axis=1), 1)
    assert np.allclose(told.predict_proba(inputs).sum(axis=1), 1)
    assert told.predict(inputs).shape == labels.shape


def test_the_loss_can_be_text_and_searched_over():
    """A criterion may be any callable that makes one, and text is what a grid can hold."""
    texts = ["ce", "ce+sr(lambda0=3,rho=2,r=1)"]
    copied: Any = clone(make_net(criterion=parse_loss, criterion__text=texts[1]))
    assert weights(copied.fit(*data())) == [3, 6, 12]
    net = make_net(criterion=parse_loss, callbacks=[MoveSchedule()])
    search = GridSearchCV(net, {"criterion__text": texts}, cv=2)
    search.fit(*data())
    assert [found["criterion__text"] for found in search.cv_results_["params"]] == texts
