"""Interface between the loop and a framework: a backend provides a ``Program`` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

__all__ = ["Program"]


@runtime_checkable
class Program(Protocol):
    """A network with its optimizer, ready to take steps.

    Values are fetched by name, so that nobody pays a device synchronization for a number that nobody asked for.
    """

    def names(self) -> Sequence[str]:
        """Return the names that ``step`` and ``evaluate`` can give a value for."""
        ...

    def declare(self, names: Sequence[str]) -> None:
        """Take note, once and before the first step, of every name that will ever be fetched.

        Args:
            names: a part of ``names()``. A backend may build its step for them.
        """
        ...

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch.

        Args:
            batch: what the data flow gave.
            names: declared names to fetch; empty most of the time.

        Returns:
            name → number or array, for the names asked for and no others.
        """
        ...

    def evaluate(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Run the network on one batch in validation mode; nothing is trained and no state changes."""
        ...

    def hyperparameters(self) -> Mapping[str, float]:
        """Return the values that may change while it trains, such as ``learning_rate``."""
        ...

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Give a hyperparameter another value, from the next step on."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that decides the steps to come: weights, slots of the optimizer, random generators.

        Hyperparameters belong to it. The arrays are copies: later steps do not change them.
        """
        ...

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Take back what ``state()`` gave.

        Raises:
            CheckpointError: where names or shapes are of another network; the program is then as it was.
        """
        ...

    def close(self) -> None:
        """Free devices and memory; closing twice does nothing."""
        ...
