"""Process-wide choice of how TensorFlow starts: in graph mode, or eagerly for debugging."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["choose_eager", "eager_debugging", "is_eager"]

_eager = False


def choose_eager() -> None:
    """Let TensorFlow start eagerly. Call it before anything else of this package is imported."""
    global _eager
    _eager = True


def is_eager() -> bool:
    """Return whether TensorFlow starts eagerly in this process."""
    return _eager


def eager_debugging() -> Any:
    """Return what runs networks eagerly, in a process in which TensorFlow has not started yet."""
    choose_eager()
    return import_module("ziggurat.backends.tensorflow.export.eager").TensorFlowDebugging()
