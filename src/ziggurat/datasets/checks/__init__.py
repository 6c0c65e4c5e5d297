"""Checks of a finished dataset: what is wrong or doubtful, where, and how to fix it."""

from ziggurat.datasets.checks.check import check_dataset
from ziggurat.datasets.checks.labels import Predictions, read_predictions
from ziggurat.datasets.checks.report import Case, CheckLimits, CheckReport, Finding

__all__ = ["Case", "CheckLimits", "CheckReport", "Finding", "Predictions", "check_dataset", "read_predictions"]
