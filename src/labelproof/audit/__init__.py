"""Which labels are wrong: suspects, the noise rate and the transition matrix.

`labelproof.audit` is this package and a verb as well: called, it audits.
"""

import sys
from types import ModuleType
from typing import Any

from labelproof.audit.cross_validation import CrossValidation, Predictions, audit_loss
from labelproof.audit.findings import Estimate, Findings
from labelproof.audit.folder import Audit, find_audit
from labelproof.audit.labels import audit_given, audit_labels, audit_logits
from labelproof.audit.noise_model import NoiseModel, fit_noise_model
from labelproof.audit.predictions import read_labels, read_probabilities
from labelproof.audit.samples import Samples, open_samples

__all__ = [
    "Audit",
    "CrossValidation",
    "Estimate",
    "Findings",
    "NoiseModel",
    "Predictions",
    "Samples",
    "audit_given",
    "audit_labels",
    "audit_logits",
    "audit_loss",
    "find_audit",
    "fit_noise_model",
    "open_samples",
    "read_labels",
    "read_probabilities",
]


class _Verb(ModuleType):
    def __call__(self, *data: Any, **options: Any) -> Audit:
        from labelproof.verbs.audit import audit

        return audit(*data, **options)


sys.modules[__name__].__class__ = _Verb
