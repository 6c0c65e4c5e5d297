"""Training host: the process that runs a program can attach to every training that the program starts.

A worker that runs a submitted program is such a host: it adds a heartbeat, events and a saver, restores a checkpoint,
and forwards stop requests. The engine only calls the host; without one, it calls nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["TrainingHost", "hosting", "training_host"]


class TrainingHost(Protocol):
    """What takes part in the trainings of a process."""

    def attach(self, trainer: Trainer) -> None:
        """Add callbacks and monitors (``trainer.add``); called once for each trainer, before it is set up."""

    def begin(self, trainer: Trainer) -> None:
        """Called when a training begins, after the set-up; may take a state back."""

    def end(self, trainer: Trainer) -> None:
        """Called when a training has ended without an error, after ``after_train`` of all callbacks; may raise."""


_host: TrainingHost | None = None  # of the process, not of a context: a program may train in a thread of its own


def training_host() -> TrainingHost | None:
    """Return the host of this process; None where there is none."""
    return _host


@contextmanager
def hosting(host: TrainingHost) -> Iterator[None]:
    """Let a host take part in all trainings that begin within the ``with`` statement.

    Args:
        host: takes part.
    """
    global _host
    before, _host = _host, host
    try:
        yield
    finally:
        _host = before
