"""The data of a bench: read once, and compared with what records and runs were trained on."""

from __future__ import annotations

import functools
from pathlib import Path

from labelproof.cli.lines import told, warn
from labelproof.data.dataset import Dataset
from labelproof.data.load import load_dataset
from labelproof.experiments.published_data import (
    explain_other_size,
    find_human_labels,
    is_of_published_data,
)
from labelproof.noise import parse_noise
from labelproof.training.configuration import Configuration
from labelproof.training.examples import Examples, choose_examples
from labelproof.training.provenance import fingerprint, mark_data
from labelproof.training.record import RunRecord

__all__ = ["BenchData"]


class BenchData:
    """Gives the examples of a configuration; each dataset is read once.

    Args:
        root: Where datasets are, or `None` for the usual place.

    Example:
        >>> BenchData(None)(Configuration("digits", noise="symmetric:0.4")).dataset.name
        'digits'
    """

    def __init__(self, root: Path | None):
        self.root = root

    def __call__(self, configuration: Configuration) -> Examples:
        """What a run learns from."""
        with told():
            human = None
            if parse_noise(configuration.noise).kind == "human":
                human = find_human_labels(configuration.data, self.root)
            return choose_examples(configuration, self.dataset(configuration.data), human=human)

    @functools.cache  # noqa: B019 (it lives as long as the command)
    def dataset(self, name: str) -> Dataset:
        """The dataset of that name."""
        with told():
            return load_dataset(name, root=self.root)

    def mark(self, configuration: Configuration) -> str:
        """The fingerprint of what a run is trained on."""
        if parse_noise(configuration.noise).kind == "human":
            return mark_data(configuration, self(configuration))
        return self._mark(configuration.data)

    @functools.cache  # noqa: B019
    def _mark(self, name: str) -> str:
        return fingerprint(self.dataset(name))

    def tell_size(self, name: str) -> None:
        """Warn of data that are not the published ones by their size."""
        explained = explain_other_size(self.dataset(name))
        if explained:
            warn(explained)

    def is_done(self, record: RunRecord | None) -> bool:
        """Whether a run with this record need not be trained.

        A record of data of another size than the published ones only stands for those data, for
        which they have to be read; any other stands for the cell.
        """
        if record is None:
            return False
        if is_of_published_data(record):
            return True
        try:
            now = self.mark(Configuration.recorded(record.configuration))
            return record.data.get("fingerprint") == now
        except OSError:  # who wants to train will be told; who wants a list gets it
            return False
