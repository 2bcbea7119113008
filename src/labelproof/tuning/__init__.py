"""Choosing a loss and its hyperparameters by noisy labels alone."""

from labelproof.tuning.collapse import back_off, collapse, patience_for
from labelproof.tuning.search import Search, tune
from labelproof.tuning.space import default_trials, starts
from labelproof.tuning.trial import OtherSearchError, Trial

__all__ = [
    "OtherSearchError",
    "Search",
    "Trial",
    "back_off",
    "collapse",
    "default_trials",
    "patience_for",
    "starts",
    "tune",
]
