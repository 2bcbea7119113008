"""skorch on handwritten digits of which 40 % of the training labels are wrong.

A loss of labelproof is a criterion like any other, and a callback of two lines moves its schedule.
The network and the setting of the regulariser are those of plain_loop.py, which says how they were
chosen: on noisy labels, never on the clean test images.

    pip install labelproof skorch
    python examples/skorch_digits.py
"""

from typing import Any

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback
from torch import nn

from labelproof import parse_loss
from labelproof.noise import parse_noise

LOSSES = {"plain": "ce", "robust": "ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.1)"}


class MoveSchedule(Callback):
    """Tells the criterion the epoch, counted from 0; its row of the history has been begun."""

    def on_epoch_begin(self, net: Any, *arguments: Any, **options: Any) -> None:
        """Called by skorch."""
        net.criterion_.set_epoch(len(net.history) - 1)


def make_net(text: str) -> NeuralNetClassifier:
    """An estimator whose criterion is made from text, so that a grid search can go over texts."""
    return NeuralNetClassifier(
        nn.Sequential(
            nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
        ),
        criterion=parse_loss,
        criterion__text=text,
        predict_nonlinearity=nn.Softmax(dim=1),  # skorch knows it for torch's own losses alone
        callbacks=[MoveSchedule()],
        optimizer=torch.optim.Adam,
        lr=2e-3,
        max_epochs=30,
        batch_size=128,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )


def main() -> None:
    """Train twice and print the accuracy of both on clean labels."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, random_state=0, stratify=labels
    )
    noise = parse_noise("symmetric:0.4").apply(train_labels, num_classes=10, seed=1)
    for name, text in LOSSES.items():
        torch.manual_seed(1)
        net = make_net(text).fit(train_images, noise.noisy)
        print(f"{name:6} {net.score(test_images, test_labels):.1%}  {text}", flush=True)


if __name__ == "__main__":
    main()
