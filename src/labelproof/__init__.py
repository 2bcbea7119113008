"""labelproof: train classifiers that stay right when their training labels are wrong.

Replace one line of a PyTorch loop:

>>> import torch
>>> from labelproof import CrossEntropy, SparseRegularized, exponential
>>> loss = SparseRegularized(
...     CrossEntropy(), temperature=0.5, p=0.1, weight=exponential(1.2, growth=1.03)
... )
>>> loss.set_epoch(0)
>>> loss(torch.tensor([[2.0, -1.0]]), torch.tensor([0]))
tensor(2.1697)
"""

import importlib
from typing import TYPE_CHECKING, Any

from labelproof.version import __version__

if TYPE_CHECKING:
    from labelproof import losses as losses
    from labelproof import schedules as schedules
    from labelproof.integrations.scikit_learn import RobustClassifier
    from labelproof.losses import (
        CrossEntropy,
        Focal,
        GeneralizedCrossEntropy,
        Loss,
        LossSyntaxError,
        MeanAbsoluteError,
        NegativeLearning,
        Normalized,
        PartiallyHuberizedCrossEntropy,
        PointwiseLoss,
        ReverseCrossEntropy,
        SparseParts,
        SparseRegularized,
        SymmetricCrossEntropy,
        as_loss,
        format_loss,
        lp_norm,
        parse_loss,
        sharpen,
        smoothing_vector,
    )
    from labelproof.schedules import constant, cosine, exponential, linear
    from labelproof.training.configuration import Configuration
    from labelproof.verbs.audit import audit
    from labelproof.verbs.fit import fit
    from labelproof.verbs.review import review
    from labelproof.verbs.run import Run, load_run
    from labelproof.verbs.train import train
    from labelproof.verbs.tune import tune

__all__ = [
    "Configuration",
    "CrossEntropy",
    "Focal",
    "GeneralizedCrossEntropy",
    "Loss",
    "LossSyntaxError",
    "MeanAbsoluteError",
    "NegativeLearning",
    "Normalized",
    "PartiallyHuberizedCrossEntropy",
    "PointwiseLoss",
    "ReverseCrossEntropy",
    "RobustClassifier",
    "Run",
    "SparseParts",
    "SparseRegularized",
    "SymmetricCrossEntropy",
    "__version__",
    "as_loss",
    "audit",
    "constant",
    "cosine",
    "exponential",
    "fit",
    "format_loss",
    "linear",
    "load_run",
    "lp_norm",
    "parse_loss",
    "review",
    "sharpen",
    "smoothing_vector",
    "train",
    "tune",
]

_ELSEWHERE = {
    "RobustClassifier": "labelproof.integrations.scikit_learn",
    "Configuration": "labelproof.training.configuration",
    "fit": "labelproof.verbs.fit",
    "train": "labelproof.verbs.train",
    "tune": "labelproof.verbs.tune",
    **dict.fromkeys(("Run", "load_run"), "labelproof.verbs.run"),
    **dict.fromkeys(("constant", "cosine", "exponential", "linear"), "labelproof.schedules"),
}
_PACKAGES = ("audit", "losses", "review", "schedules")


if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        # Imported on first use: a user of a loss should not wait for scikit-learn, and the program
        # handles Ctrl-C quietly while torch is being imported.
        if name in _PACKAGES:
            return importlib.import_module(f"labelproof.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_ELSEWHERE.get(name, "labelproof.losses")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__doc__", "__file__", "__name__", "__path__"})
