"""Owns the checks of a finished data set: what is wrong or doubtful in it, where, and what to do."""

from ziggurat.datasets.checks.check import check_dataset
from ziggurat.datasets.checks.predictions import Predictions, read_predictions
from ziggurat.datasets.checks.report import Case, CheckLimits, CheckReport, Finding

__all__ = ["Case", "CheckLimits", "CheckReport", "Finding", "Predictions", "check_dataset", "read_predictions"]
