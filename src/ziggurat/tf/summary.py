"""Summaries of a graph: what is logged of a tower, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callbacks.summaries import LogScalars
from ziggurat.tf.tower import MOVING_SUMMARIES, get_current_tower_context

__all__ = ["MergeAllSummaries", "MovingSummary", "add_moving_summary"]


@dataclass(frozen=True)
class MovingSummary:
    """A single number whose moving average is put after each epoch.

    Args:
        tag: name of the curve.
        tensor: the number.
        decay: of the average, in [0, 1).
    """

    tag: str
    tensor: Any
    decay: float


def add_moving_summary(*args: Any, decay: float = 0.95) -> None:
    """Log the moving averages of single numbers; does nothing outside of the main training tower."""
    context = get_current_tower_context()
    if context is not None and not context.is_main_training_tower:
        return
    for each in args:
        tag = each.op.name
        if context is not None and context.ns_name:
            tag = tag.removeprefix(f"{context.ns_name}/")
        tf.add_to_collection(MOVING_SUMMARIES, MovingSummary(tag, each, decay))


class MergeAllSummaries(LogScalars):
    """Puts the summaries of the graph."""
