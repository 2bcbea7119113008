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
    Focal,
    PartiallyHuberizedCrossEntropy,
    TaylorCrossEntropy,
    cross_entropy,
    focal,
    partially_huberized_cross_entropy,
)
from labelproof.losses.divergence import BiTempered, JensenShannon
from labelproof.losses.epsilon import EpsilonCrossEntropy, EpsilonFocal
from labelproof.losses.generalized import (
    GeneralizedCrossEntropy,
    MeanAbsoluteError,
    generalized_cross_entropy,
    mean_absolute_error,
)
from labelproof.losses.names import LOSSES
from labelproof.losses.negative import NegativeLearning, draw_complementary, negative_learning
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
from labelproof.losses.symmetric import (
    ReverseCrossEntropy,
    SymmetricCrossEntropy,
    reverse_cross_entropy,
    symmetric_cross_entropy,
)
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
    "cross_entropy",
    "draw_complementary",
    "focal",
    "format_loss",
    "generalized_cross_entropy",
    "lp_norm",
    "mean_absolute_error",
    "negative_learning",
    "parse_loss",
    "partially_huberized_cross_entropy",
    "permutation_penalty",
    "reverse_cross_entropy",
    "sharpen",
    "smoothing_vector",
    "sparse_rate",
    "symmetric_cross_entropy",
]
