"""Real digits with wrong labels: what each algorithm promises is seen to happen."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from labelproof import CrossEntropy
from labelproof.data import load_digits
from labelproof.noise import parse_noise
from labelproof.training.algorithms import (
    Algorithm,
    Batch,
    CoTeaching,
    Supervised,
)

EXAMPLES = 1347


def learn(
    algorithm: Algorithm, *, noise: str, epochs: int, learning_rate: float, seed: int = 0
) -> float:
    """Train, and return the accuracy of the first network on the clean test images."""
    digits = load_digits()
    labels = parse_noise(noise).apply(digits.train.labels, num_classes=10, seed=seed).noisy
    images, clean_images = (
        (torch.from_numpy(split.array) / 255 - digits.mean[0]) / digits.std[0]
        for split in (digits.train, digits.test)
    )
    target = torch.from_numpy(labels)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        networks = [
            nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
            for _ in range(algorithm.num_networks)
        ]
    parameters = [each for network in networks for each in network.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    for epoch in range(epochs):
        algorithm.set_epoch(epoch)
        for index in torch.randperm(len(target), generator=generator).split(128):
            logits = tuple(network(images[index]) for network in networks)
            losses = algorithm.objectives(Batch(logits, target[index], index)).losses
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()
            optimizer.step()
        algorithm.after_epoch(epoch)
    with torch.no_grad():
        predicted = networks[0](clean_images).argmax(1)
    return float((predicted == torch.from_numpy(digits.test.labels)).float().mean())


@pytest.mark.parametrize(("noise", "low", "high"), [("symmetric:0.4", 0.3, 0.5), ("none", 0, 0.15)])
def test_the_noise_rate_is_found(noise: str, low: float, high: float):
    algorithm = CoTeaching(CrossEntropy(), num_classes=10, num_examples=EXAMPLES, ramp_epochs=6)
    learn(algorithm, noise=noise, epochs=6, learning_rate=4e-3)
    assert low <= float(algorithm.noise_rate) <= high


def test_co_teaching_beats_plain_cross_entropy():
    # Long and fast enough for a network to learn wrong labels by heart where nothing stops it.
    peers = CoTeaching(
        CrossEntropy(), num_classes=10, num_examples=EXAMPLES, noise_rate=0.4, ramp_epochs=5
    )
    plain = Supervised(CrossEntropy(), num_classes=10, num_examples=EXAMPLES)
    robust, misled = (
        learn(each, noise="symmetric:0.4", epochs=16, learning_rate=1e-2) for each in (peers, plain)
    )
    assert robust > misled + 0.03
