"""What tests of several packages share."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

# A busy machine takes its time; what takes too long altogether is seen anyway.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many threads as a worker of a cluster has, so that sums come out the same."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
