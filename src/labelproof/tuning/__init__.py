"""Choose a loss and its hyperparameters by noisy labels alone."""

from labelproof.tuning.collapse import back_off, collapse, patience_for
from labelproof.tuning.search import Search, tune
from labelproof.tuning.space import DEFAULT_TRIALS, starts
from labelproof.tuning.trial import OtherSearchError, Trial

__all__ = [
    "DEFAULT_TRIALS",
    "OtherSearchError",
    "Search",
    "Trial",
    "back_off",
    "collapse",
    "patience_for",
    "starts",
    "tune",
]
