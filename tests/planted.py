"""What a file that is unpickled could do."""

from pathlib import Path
from typing import Any


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path):
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.file,)
