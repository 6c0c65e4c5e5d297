"""Learning tasks: what is learned, how it is measured, and how a prediction is shown, in one place for each."""

from __future__ import annotations

from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, Task, TaskContext, raw_outputs
from ziggurat.tasks.classification import CLASSIFICATION
from ziggurat.tasks.classification_metrics import ConfusionMetric
from ziggurat.tasks.means_metric import MeansMetric
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.preprocessing import InputPreprocessing
from ziggurat.tasks.registry import AUTO_TASK, default_task, task, tasks, tasks_for
from ziggurat.tasks.report import MetricInfo, ScoreInfo

__all__ = [
    "AUTO_TASK",
    "CLASSIFICATION",
    "ArraySpec",
    "ConfusionMetric",
    "InputPreprocessing",
    "MeansMetric",
    "Metric",
    "MetricInfo",
    "PrimaryMetric",
    "ScoreInfo",
    "Task",
    "TaskContext",
    "default_task",
    "raw_outputs",
    "task",
    "tasks",
    "tasks_for",
]
