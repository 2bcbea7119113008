"""Datasets: from files to images, labels and class names."""

from labelproof.data.dataset import Dataset, Split
from labelproof.data.digits import load_digits

__all__ = ["Dataset", "Split", "load_digits"]
