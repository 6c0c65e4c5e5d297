"""Contexts of jobs for tests: what is learned, from what, with which preprocessing."""

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, TaskContext

__all__ = ["of_classes"]


def of_classes(names, preprocessing=None):
    """Return the context of a job that classifies images; ``names`` of the classes, or how many there are."""
    given = tuple(map(str, range(names))) if isinstance(names, int) else tuple(names)
    schema = Schema(kind="image-classification", class_names=given)
    return TaskContext(CLASSIFICATION, schema, preprocessing or Preprocessing(size=(8, 8), channels=1))
