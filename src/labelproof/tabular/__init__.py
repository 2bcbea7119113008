"""Classifiers of rows, chosen and blended by noisy labels alone."""
