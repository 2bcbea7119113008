"""Label noise: by transition matrix, by instance, and from human labels."""

from labelproof.noise.human import HUMAN_LABELS, HumanSet, human_labels
from labelproof.noise.matrices import (
    CONFUSIONS,
    REFERENCE_CONFUSIONS,
    SUPER_CLASSES,
    UnlearnableClassWarning,
    asymmetric_matrix,
    check_matrix,
    find_rivals,
    pair_matrix,
    symmetric_matrix,
    warn_of_rivals,
)
from labelproof.noise.sampling import NoisyLabels, corrupt, corrupt_by_instance
from labelproof.noise.text import NoiseSpec, parse_noise

__all__ = [
    "CONFUSIONS",
    "HUMAN_LABELS",
    "REFERENCE_CONFUSIONS",
    "SUPER_CLASSES",
    "HumanSet",
    "NoiseSpec",
    "NoisyLabels",
    "UnlearnableClassWarning",
    "asymmetric_matrix",
    "check_matrix",
    "corrupt",
    "corrupt_by_instance",
    "find_rivals",
    "human_labels",
    "pair_matrix",
    "parse_noise",
    "symmetric_matrix",
    "warn_of_rivals",
]
