"""Division of samples into training, validation and test splits, and detection of leaks between them."""

from ziggurat.datasets.splitting.assign import Assignment, assign_splits
from ziggurat.datasets.splitting.leaks import LeakPair, LeakReport, find_leaks
from ziggurat.datasets.splitting.rule import METHODS, SplitRule

__all__ = ["METHODS", "Assignment", "LeakPair", "LeakReport", "SplitRule", "assign_splits", "find_leaks"]
