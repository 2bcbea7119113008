"""Datasets and tables as people write them."""

from __future__ import annotations

__all__ = ["DATASETS", "TABLES"]

DATASETS = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "webvision": "mini WebVision",
}
"""Datasets as people write them."""

TABLES = {
    "symmetric": "symmetric noise",
    "asymmetric": "asymmetric noise",
    "comparison": "other methods",
    "imbalance": "imbalanced classes",
    "webvision": "web labels",
    "beyond": "beyond the paper",
    "human": "human labels",
    "sweep-lambda": "the penalty's weight λ",
    "sweep-tau": "the temperature τ",
    "sweep-p": "the exponent p",
}
"""Tables as people write them."""
