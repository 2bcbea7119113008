"""Lightning on handwritten digits of which 40 % of the training labels are wrong.

A module with a robust loss brings the callback that moves its schedule; nothing else changes. The
network and the setting of the regulariser are those of plain_loop.py, which says how they were
chosen: on noisy labels, never on the clean test images.

    pip install 'labelproof[lightning]'
    python examples/lightning_digits.py
"""

import logging
import warnings

import torch
from lightning.pytorch import Trainer, seed_everything
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from labelproof.integrations.lightning import RobustModule
from labelproof.noise import parse_noise

LOSSES = {"plain": "ce", "robust": "ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.1)"}


class Digits(RobustModule):
    """A classifier whose loss is given as text."""

    def __init__(self, loss: str):
        super().__init__(loss)
        self.network = nn.Sequential(
            nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
        )

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        """Loss of a batch with noisy labels."""
        images, labels = batch
        return self.robust_loss(self.network(images), labels)

    def test_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        """Accuracy on a batch with clean labels."""
        images, labels = batch
        hits = self.network(images).argmax(dim=1) == labels
        self.log("accuracy", hits.float().mean(), batch_size=len(labels))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The optimiser of any other module."""
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def load(*, seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Training images with noisy labels, test images with clean ones."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, random_state=0, stratify=labels
    )
    noise = parse_noise("symmetric:0.4").apply(train_labels, num_classes=10, seed=seed)
    return (
        TensorDataset(torch.as_tensor(train_images), torch.as_tensor(noise.noisy)),
        TensorDataset(torch.as_tensor(test_images), torch.as_tensor(test_labels)),
    )


def train(text: str) -> float:
    """Train with the loss that `text` describes; return the accuracy on the clean test images."""
    seed_everything(1, verbose=False)
    train_set, test_set = load(seed=1)
    module = Digits(text)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=30,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    trainer.fit(module, DataLoader(train_set, batch_size=128, shuffle=True))
    return trainer.test(module, DataLoader(test_set, batch_size=450), verbose=False)[0]["accuracy"]


def main() -> None:
    """Train twice and print the accuracy of both."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")  # advice on speed, and its own upkeep
    for name, text in LOSSES.items():
        print(f"{name:6} {train(text):.1%}  {text}", flush=True)


if __name__ == "__main__":
    main()
