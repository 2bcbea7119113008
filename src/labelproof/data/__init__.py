"""Datasets: from files to images, labels and class names."""

from labelproof.data.dataset import Dataset, ImageSource, Split
from labelproof.data.digits import load_digits

__all__ = ["Dataset", "ImageSource", "Split", "load_digits"]
