"""Ziggurat in a Python session or notebook: train, load, predict, evaluate and export in a few lines.

``import ziggurat`` has these names; they are loaded when they are used first.
"""

from ziggurat.interactive.calls import dataset, load, runs, train
from ziggurat.interactive.curves import Curves
from ziggurat.interactive.datasets import Dataset
from ziggurat.interactive.evaluation import Evaluation
from ziggurat.interactive.exported import ExportedModel
from ziggurat.interactive.homes import Connection, connect
from ziggurat.interactive.prediction import Box, ClassScore, Prediction, Predictions
from ziggurat.interactive.run import Run, Runs

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
    "connect",
    "dataset",
    "load",
    "runs",
    "train",
]
