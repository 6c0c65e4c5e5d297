"""Interface between the loop and a framework: a backend provides a ``Program`` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ziggurat.engine.feed import BatchCycle, Feed

__all__ = ["GraphAccess", "NonFiniteStep", "Program", "SupportsRecording"]


class NonFiniteStep(Exception):  # noqa: N818 - the step was taken, and the trainer says what it means
    """Raised by ``step`` of a program that watches values: the step is complete, and a watched value is not finite.

    Args:
        name: the value.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@runtime_checkable
class Program(Protocol):
    """A network with its optimizer, ready to take steps.

    Values are fetched by name, so that only requested numbers cost a device synchronization.
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

    def connect(self, batches: BatchCycle) -> Feed:
        """Return the way of batches into ``step``: once after ``declare``, and again when a state was loaded.

        ``DirectFeed(batches)`` will do; a program that needs its batches earlier has a feed of its own.

        Args:
            batches: endless batches, at the position where the feed begins.
        """
        ...

    def step(self, batch: Any, names: Sequence[str]) -> Mapping[str, Any]:
        """Train on one batch.

        Args:
            batch: what the feed gave.
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


@runtime_checkable
class SupportsRecording(Protocol):
    """A program that keeps single numbers of its training steps until they are fetched, many steps at a time.

    What it keeps is no part of ``state()``: before a state is taken, everything is fetched.
    """

    def record(self, names: Sequence[str], watched: Sequence[str]) -> Sequence[str]:
        """Keep values of every step to come, as 64-bit floats. It is asked before ``declare``.

        Args:
            names: a part of ``names()``.
            watched: where one of these that is kept is NaN or infinite, ``step`` raises ``NonFiniteStep`` once the
                step is complete.

        Returns:
            the names that are kept; a program may leave out what is no single number.
        """
        ...

    def recorded(self) -> Mapping[str, np.ndarray]:
        """Return kept name → values of the steps since the last call, oldest first."""
        ...


@runtime_checkable
class GraphAccess(Protocol):
    """A program whose graph callbacks may add to in ``setup_graph``; ``declare`` finalizes it."""

    def extend_graph(self) -> AbstractContextManager[dict[str, Any]]:
        """Make the graph the default one; give name → tensor of a training step, to which values may be added.

        Raises:
            StateError: where the graph is final.
        """
        ...
