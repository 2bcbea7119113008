"""What losses are called in text, and the arguments they are written with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from labelproof.losses.absolute_error import MeanAbsoluteError
from labelproof.losses.active_negative import (
    NormalizedNegativeCrossEntropy,
    NormalizedNegativeFocal,
)
from labelproof.losses.asymmetric import (
    AsymmetricExponential,
    AsymmetricGeneralizedCrossEntropy,
    AsymmetricSquaredError,
    AsymmetricUnhinged,
)
from labelproof.losses.base import Loss
from labelproof.losses.cross_entropy import CrossEntropy, TaylorCrossEntropy
from labelproof.losses.divergence import BiTempered, JensenShannon
from labelproof.losses.epsilon import EpsilonCrossEntropy, EpsilonFocal
from labelproof.losses.focal import Focal
from labelproof.losses.generalized import GeneralizedCrossEntropy
from labelproof.losses.huberized import PartiallyHuberizedCrossEntropy
from labelproof.losses.negative import NegativeLearning
from labelproof.losses.reverse import ReverseCrossEntropy
from labelproof.losses.symmetric import SymmetricCrossEntropy

__all__ = ["LOSSES", "SPOKEN", "SUFFIXES", "UNWRITTEN", "WRITTEN", "loss_arguments"]

LOSSES: Mapping[str, type[Loss]] = {
    "ce": CrossEntropy,
    "fl": Focal,
    "mae": MeanAbsoluteError,
    "rce": ReverseCrossEntropy,
    "gce": GeneralizedCrossEntropy,
    "sce": SymmetricCrossEntropy,
    "phuber": PartiallyHuberizedCrossEntropy,
    "nl": NegativeLearning,
    "agce": AsymmetricGeneralizedCrossEntropy,
    "aul": AsymmetricUnhinged,
    "ael": AsymmetricExponential,
    "amse": AsymmetricSquaredError,
    "negce": NormalizedNegativeCrossEntropy,
    "negfl": NormalizedNegativeFocal,
    "epsce": EpsilonCrossEntropy,
    "epsfl": EpsilonFocal,
    "js": JensenShannon,
    "taylor": TaylorCrossEntropy,
    "bitempered": BiTempered,
}
"""Every elementary loss by the name it is written with; `n` before a name normalises it."""

WRITTEN = {"log_zero": "A"}
"""Arguments that have another name in text."""
SPOKEN = {written: name for name, written in WRITTEN.items()}
"""The way back."""
UNWRITTEN = {"generator"}
"""Arguments that have no text."""
SUFFIXES: Mapping[str, dict[str, Any]] = {
    "sr": {
        "tau": 0.5,
        "p": 0.1,
        "lambda0": 1.2,
        "rho": 1.03,
        "r": 1,
        "lambda_max": None,
        "normalize": True,
        "clamp": None,
        "tau_rho": 1,
        "tau_min": 0,
        "smoothing": 0,
    },
    "clip": {"delta": 1},
}
"""What stands after a sum and takes all of it: sparse regularization and logit clipping, with what
they are set to where the text does not say."""


def loss_arguments(family: type[Loss]) -> dict[str, Any]:
    """The arguments a loss is written with, and their defaults.

    >>> loss_arguments(SymmetricCrossEntropy)["alpha"]
    0.1
    """
    # Of the method, since the class's own signature has the settings of every loss spelled out.
    _, *parameters = inspect.signature(family.__init__).parameters.values()
    return {
        WRITTEN.get(parameter.name, parameter.name): parameter.default
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name not in UNWRITTEN
    }
