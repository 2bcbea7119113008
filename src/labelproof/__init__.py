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

from typing import TYPE_CHECKING, Any

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
from labelproof.version import __version__

if TYPE_CHECKING:
    from labelproof.integrations.scikit_learn import RobustClassifier

__all__ = [
    "CrossEntropy",
    "Focal",
    "GeneralizedCrossEntropy",
    "Loss",
    "LossSyntaxError",
    "MeanAbsoluteError",
    "NegativeLearning",
    "Normalized",
    "PartiallyHuberizedCrossEntropy",
    "ReverseCrossEntropy",
    "RobustClassifier",
    "SparseParts",
    "SparseRegularized",
    "SymmetricCrossEntropy",
    "__version__",
    "as_loss",
    "constant",
    "cosine",
    "exponential",
    "format_loss",
    "linear",
    "lp_norm",
    "parse_loss",
    "sharpen",
    "smoothing_vector",
]


def __getattr__(name: str) -> Any:
    # Loaded when it is asked for: whoever needs a loss alone should not wait for scikit-learn.
    if name == "RobustClassifier":
        from labelproof.integrations.scikit_learn import RobustClassifier

        return RobustClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
