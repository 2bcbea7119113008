"""Losses: one interface, `Normalized`, sums with `+` and `*`, and `SparseRegularized`."""

from labelproof.losses.algebra import ForeignLoss, LogitClip, WeightedSum, as_loss
from labelproof.losses.asymmetric import (
    AsymmetricExponential,
    AsymmetricGeneralizedCrossEntropy,
    AsymmetricSquaredError,
    AsymmetricUnhinged,
)
from labelproof.losses.base import Loss, LossSettings, PointwiseLoss
from labelproof.losses.batch import Outputs
from labelproof.losses.cross_entropy import (
    CrossEntropy,
    EpsilonCrossEntropy,
    EpsilonFocal,
    Focal,
    GeneralizedCrossEntropy,
    MeanAbsoluteError,
    PartiallyHuberizedCrossEntropy,
    ReverseCrossEntropy,
    SymmetricCrossEntropy,
    TaylorCrossEntropy,
)
from labelproof.losses.divergence import BiTempered, JensenShannon
from labelproof.losses.names import LOSSES
from labelproof.losses.negative import NegativeLearning, draw_complementary
from labelproof.losses.normalized import (
    Normalized,
    NormalizedNegativeCrossEntropy,
    NormalizedNegativeFocal,
)
from labelproof.losses.penalty import (
    lp_norm,
    permutation_penalty,
    sharpen,
    smoothing_vector,
    sparse_rate,
)
from labelproof.losses.sparse import SparseParts, SparseRegularized
from labelproof.losses.text import LossSyntaxError, format_loss, parse_loss

__all__ = [
    "LOSSES",
    "AsymmetricExponential",
    "AsymmetricGeneralizedCrossEntropy",
    "AsymmetricSquaredError",
    "AsymmetricUnhinged",
    "BiTempered",
    "CrossEntropy",
    "EpsilonCrossEntropy",
    "EpsilonFocal",
    "Focal",
    "ForeignLoss",
    "GeneralizedCrossEntropy",
    "JensenShannon",
    "LogitClip",
    "Loss",
    "LossSettings",
    "LossSyntaxError",
    "MeanAbsoluteError",
    "NegativeLearning",
    "Normalized",
    "NormalizedNegativeCrossEntropy",
    "NormalizedNegativeFocal",
    "Outputs",
    "PartiallyHuberizedCrossEntropy",
    "PointwiseLoss",
    "ReverseCrossEntropy",
    "SparseParts",
    "SparseRegularized",
    "SymmetricCrossEntropy",
    "TaylorCrossEntropy",
    "WeightedSum",
    "as_loss",
    "draw_complementary",
    "format_loss",
    "lp_norm",
    "parse_loss",
    "permutation_penalty",
    "sharpen",
    "smoothing_vector",
    "sparse_rate",
]
