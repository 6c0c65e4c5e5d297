"""Values that metrics have in common: JSON numbers, and checks of the arrays of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ziggurat.errors import UsageError

__all__ = ["add_sums", "check_same_shape", "finite_number", "share_of"]


def finite_number(value: Any) -> float | None:
    """Return a number as a JSON value: None where it is NaN or infinite, which JSON cannot hold."""
    number = float(value)
    return number if math.isfinite(number) else None


def share_of(part: Any, whole: Any) -> float | None:
    """Return part / whole; None where the whole is 0."""
    return float(part / whole) if whole else None


def check_same_shape(output: np.ndarray, target: np.ndarray) -> None:
    """Check that the network's values and the targets of a batch belong together.

    Raises:
        UsageError: where their shapes differ.
    """
    if output.shape != target.shape:
        raise UsageError(
            "The output of the network has the shape of its target.",
            received=f"output {output.shape} for target {target.shape}",
            advice="Let the last layer give as many values as the target has.",
        )


def add_sums(sums: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> None:
    """Add the sums of other samples to ``sums``, in place.

    Raises:
        UsageError: where they are of other classes, values or sizes.
    """
    for name, own in sums.items():
        if name not in state or np.shape(state[name]) != own.shape:
            raise UsageError(
                "Only metrics of the same kind and size can be merged.",
                received=f"`{name}` {np.shape(state[name]) if name in state else 'missing'} for {own.shape}",
            )
    for name, own in sums.items():
        own += state[name]
