"""A plain PyTorch loop on handwritten digits of which 40 % of the training labels are wrong.

It is run twice, with cross entropy and with the same loss under sparse regularization. The setting
of the regulariser was chosen by accuracy on a held-out fifth of the NOISY training labels, never on
the clean test images:

    python examples/plain_loop.py
    python examples/plain_loop.py --choose  # how it was chosen, about a minute
"""

import sys

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from labelproof import parse_loss
from labelproof.noise import parse_noise

LOSSES = {"plain": "ce", "robust": "ce+sr(tau=0.5,p=0.1,lambda0=5,rho=1.1)"}
CANDIDATES = [
    f"ce+sr(tau=0.5,p=0.1,lambda0={weight},rho={growth},normalize={normalize})"
    for normalize in ("false", "true")
    for weight in (2, 5)
    for growth in (1.1, 1.15)
]


def load(*, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images with noisy labels, test images with clean ones."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, random_state=0, stratify=labels
    )
    noise = parse_noise("symmetric:0.4").apply(train_labels, num_classes=10, seed=seed)
    return (
        torch.as_tensor(train_images),
        torch.as_tensor(noise.noisy),
        torch.as_tensor(test_images),
        torch.as_tensor(test_labels),
    )


def train(text: str, images: Tensor, labels: Tensor, *, seed: int) -> nn.Module:
    """Train a network with the loss that `text` describes."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    loss = parse_loss(text)  # instead of nn.CrossEntropyLoss()
    for epoch in range(30):
        loss.set_epoch(epoch)  # the regulariser's weight grows from epoch to epoch
        for batch in torch.randperm(len(images)).split(128):
            optimizer.zero_grad()
            loss(network(images[batch]), labels[batch]).backward()
            optimizer.step()
    return network


@torch.no_grad()
def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Share of the images whose label is predicted."""
    return (network(images).argmax(dim=1) == labels).float().mean().item()


def choose() -> None:
    """Compare settings on labels as noisy as those that are trained on."""
    for text in [LOSSES["plain"], *CANDIDATES]:
        found = []
        for seed in (100, 101):
            images, labels, _, _ = load(seed=seed)
            kept, held = train_test_split(range(len(labels)), test_size=0.2, random_state=seed)
            network = train(text, images[kept], labels[kept], seed=seed)
            found.append(accuracy(network, images[held], labels[held]))
        print(f"{sum(found) / len(found):.1%} of the held-out noisy labels  {text}", flush=True)


def main() -> None:
    """Train twice and print the accuracy of both on clean labels."""
    images, labels, test_images, test_labels = load(seed=1)
    for name, text in LOSSES.items():
        network = train(text, images, labels, seed=1)
        print(f"{name:6} {accuracy(network, test_images, test_labels):.1%}  {text}", flush=True)


if __name__ == "__main__":
    choose() if "--choose" in sys.argv[1:] else main()
