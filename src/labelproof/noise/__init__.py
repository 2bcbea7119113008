"""Label noise: labels in, labels out, and what was done to them."""

from labelproof.noise.confusions import CONFUSIONS
from labelproof.noise.labels import NoisyLabels, corrupt
from labelproof.noise.matrices import (
    asymmetric_matrix,
    check_matrix,
    pair_matrix,
    symmetric_matrix,
)
from labelproof.noise.spec import NoiseSpec, parse_noise

__all__ = [
    "CONFUSIONS",
    "NoiseSpec",
    "NoisyLabels",
    "asymmetric_matrix",
    "check_matrix",
    "corrupt",
    "pair_matrix",
    "parse_noise",
    "symmetric_matrix",
]
