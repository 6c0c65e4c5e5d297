"""Checks of a finished dataset: what is wrong or doubtful, where, and how to fix it."""

from ziggurat.datasets.checks.check import check_dataset
from ziggurat.datasets.checks.labels import Predictions, read_predictions
from ziggurat.datasets.checks.made_before import MADE_BEFORE, why_not_again
from ziggurat.datasets.checks.report import Case, CheckLimits, CheckReport, Finding

__all__ = [
    "MADE_BEFORE",
    "Case",
    "CheckLimits",
    "CheckReport",
    "Finding",
    "Predictions",
    "check_dataset",
    "read_predictions",
    "why_not_again",
]
