"""pyarrow, for those who have it: nothing else here needs it, so it is not installed with us."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["import_arrow"]


def import_arrow(purpose: str, module: str = "pyarrow") -> Any:
    """Import pyarrow or one of its modules, or say what to install.

    Args:
        purpose: What it is needed for, the beginning of the message.
        module: `"pyarrow"`, `"pyarrow.parquet"`, ...

    Raises:
        ImportError: It is not installed, or its installation is broken.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs pyarrow; install it with: pip install 'labelproof[parquet]'"
        ) from error
