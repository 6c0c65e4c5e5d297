"""Array names of averaged weights in a checkpoint, and their use as the weights of a trained network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["AVERAGES", "with_averages"]

AVERAGES: Final = "ziggurat/averages/"
"""In front of a weight's name: the array of its average."""


def with_averages(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a checkpoint, each weight that has an average replaced by it.

    So a network that predicts, is evaluated, exported or trained further starts from the averages. A training that
    resumes takes the arrays as they are. Doing it twice changes nothing more.

    Args:
        arrays: name → array, as a program's ``state()`` gave them.
    """
    return {name: arrays.get(f"{AVERAGES}{name}", array) for name, array in arrays.items()}
