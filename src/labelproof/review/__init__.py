"""Deciding about suspicious labels, one by one, in the browser."""

from labelproof.review.choices import CHOICES
from labelproof.review.export import export_csv
from labelproof.review.serving import serve
from labelproof.review.standing import Review
from labelproof.review.store import Decision, Decisions

__all__ = ["CHOICES", "Decision", "Decisions", "Review", "export_csv", "serve"]
