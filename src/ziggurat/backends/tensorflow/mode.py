"""Process-wide choice of how TensorFlow starts: in graph mode, or eagerly for debugging."""

from __future__ import annotations

__all__ = ["choose_eager", "is_eager"]

_eager = False


def choose_eager() -> None:
    """Let TensorFlow start eagerly. Call it before anything else of this package is imported."""
    global _eager
    _eager = True


def is_eager() -> bool:
    """Return whether TensorFlow starts eagerly in this process."""
    return _eager
