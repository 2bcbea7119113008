"""Learning algorithms: how the labels of a batch become what each network minimises.

A new algorithm is one file here, with a subclass of `Algorithm`, and one line in `spec.py`, with
the name it is written by. The engine, the command line and the records need not hear of it.
"""

from labelproof.training.algorithms.base import Algorithm, Batch, Objectives, selected_mean
from labelproof.training.algorithms.co_teaching import CoTeaching, estimate_noise_rate, smallest
from labelproof.training.algorithms.elr import EarlyLearning
from labelproof.training.algorithms.negative import NegativeToPositive
from labelproof.training.algorithms.spec import (
    ALGORITHMS,
    format_algorithm,
    make_algorithm,
)
from labelproof.training.algorithms.supervised import Supervised

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Batch",
    "CoTeaching",
    "EarlyLearning",
    "NegativeToPositive",
    "Objectives",
    "Supervised",
    "estimate_noise_rate",
    "format_algorithm",
    "make_algorithm",
    "selected_mean",
    "smallest",
]
