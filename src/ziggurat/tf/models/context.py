"""Whether layers behave as in training: what their argument says, or else the tower."""

from __future__ import annotations

from ziggurat.errors import StateError
from ziggurat.tf.tower import get_current_tower_context

__all__ = ["is_training_now"]


def is_training_now(training: bool | None, layer: str) -> bool:
    """Return whether a layer behaves as in training.

    Args:
        training: its argument; None for what the tower says.
        layer: its name, for the error.

    Raises:
        StateError: where neither says it.
    """
    if training is not None:
        return bool(training)
    context = get_current_tower_context()
    if context is None:
        raise StateError(
            f"`{layer}` was called outside of a tower, so whether it trains or predicts is not known.",
            advice="Build it under `with TowerContext('', is_training=True):`, or give it `training=`.",
        )
    return context.is_training
