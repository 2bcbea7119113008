"""Label noise: labels in, labels out, and what was done to them."""

from labelproof.noise.confusions import CONFUSIONS, REFERENCE_CONFUSIONS, SUPER_CLASSES
from labelproof.noise.human import HUMAN_LABELS, HumanSet, human_labels
from labelproof.noise.instance import corrupt_by_instance
from labelproof.noise.labels import NoisyLabels, corrupt
from labelproof.noise.learnability import (
    Rival,
    UnlearnableClassWarning,
    find_rivals,
    warn_of_rivals,
)
from labelproof.noise.matrices import (
    asymmetric_matrix,
    check_matrix,
    pair_matrix,
    symmetric_matrix,
)
from labelproof.noise.spec import NoiseSpec, parse_noise

__all__ = [
    "CONFUSIONS",
    "HUMAN_LABELS",
    "REFERENCE_CONFUSIONS",
    "SUPER_CLASSES",
    "HumanSet",
    "NoiseSpec",
    "NoisyLabels",
    "Rival",
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
