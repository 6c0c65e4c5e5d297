"""Types of the names that ``import ziggurat`` loads when they are used first."""

from ziggurat.interactive import (
    Box,
    ClassScore,
    Connection,
    Curves,
    Dataset,
    Evaluation,
    ExportedModel,
    Prediction,
    Predictions,
    Run,
    Runs,
    connect,
    dataset,
    load,
    runs,
    train,
)
from ziggurat.program_log import log, log_image

__all__ = [
    "Box",
    "ClassScore",
    "Connection",
    "Curves",
    "Dataset",
    "Evaluation",
    "ExportedModel",
    "Prediction",
    "Predictions",
    "Run",
    "Runs",
    "__version__",
    "connect",
    "dataset",
    "load",
    "log",
    "log_image",
    "runs",
    "train",
]

__version__: str
