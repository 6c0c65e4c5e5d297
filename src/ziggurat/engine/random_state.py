"""Global random generators that user code may use: Python's and NumPy's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

__all__ = ["global_random_state", "load_global_random_state", "seed_global_random"]


def seed_global_random(seed: int) -> None:
    """Let ``seed`` decide what users' code draws from ``random`` and ``numpy.random`` until a state is loaded."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


def global_random_state() -> dict[str, Any]:
    """Return the state of ``random`` and of ``numpy.random``, as JSON values."""
    version, words, gauss = random.getstate()
    numpy_state: Any = np.random.get_state(legacy=False)
    inner = numpy_state["state"]
    return {
        "python": [version, list(words), gauss],
        "numpy": {
            "bit_generator": numpy_state["bit_generator"],
            "key": [int(word) for word in inner["key"]],
            "pos": int(inner["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        },
    }


def load_global_random_state(state: dict[str, Any]) -> None:
    """Take back what ``global_random_state()`` gave."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    numpy_state = state["numpy"]
    np.random.set_state(
        (
            numpy_state["bit_generator"],
            np.array(numpy_state["key"], dtype=np.uint32),
            numpy_state["pos"],
            numpy_state["has_gauss"],
            numpy_state["gauss"],
        )
    )
