"""Review suspicious labels in the browser.

`labelproof.review` is this package and a verb as well: called, it serves a review.
"""

import sys
from types import ModuleType
from typing import Any

from labelproof.review.decisions import CHOICES, Decisions, Review, export_csv
from labelproof.review.serving import serve

__all__ = ["CHOICES", "Decisions", "Review", "export_csv", "serve"]


class _Verb(ModuleType):
    def __call__(self, *folder: Any, **options: Any) -> None:
        from labelproof.verbs.review import review

        review(*folder, **options)


sys.modules[__name__].__class__ = _Verb
