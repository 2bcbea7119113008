"""Experiments: the paper's settings, tables and figures, and the demo."""
