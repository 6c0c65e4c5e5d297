"""Gradient processors: functions from (gradient, variable) pairs to such pairs, between the cost and the update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ziggurat.errors import ConfigurationError

__all__ = ["filter_none"]


def filter_none(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the pairs that have a gradient.

    Raises:
        ConfigurationError: where none has.
    """
    kept = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    if not kept:
        raise ConfigurationError(
            "A cost depends on at least one trainable variable.",
            received=", ".join(variable.op.name for _, variable in pairs[:5]) or "no trainable variable",
            advice="Make the variables by `tf.get_variable` in the tower function, and use them for the cost.",
        )
    return kept
