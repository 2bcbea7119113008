"""Datasets: from files to images, labels and class names."""
