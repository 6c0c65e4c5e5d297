"""Metrics of predictions for each learning task, the same in validation, evaluations, tests and exports."""

from __future__ import annotations

from ziggurat.tasks.classification_metrics import ConfusionMetric
from ziggurat.tasks.means_metric import MeansMetric
from ziggurat.tasks.metric import Metric

__all__ = ["ConfusionMetric", "MeansMetric", "Metric"]
