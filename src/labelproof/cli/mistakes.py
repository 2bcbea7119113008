"""Which errors are mistakes of who uses the program."""

from __future__ import annotations

from labelproof.training.checkpoint import LaterFormatError
from labelproof.training.run_folder import FolderInUseError

__all__ = ["MISTAKES"]

MISTAKES = (ValueError, OSError, ImportError, FolderInUseError, LaterFormatError)
"""Errors that say in a line what is wrong with what was asked for."""
