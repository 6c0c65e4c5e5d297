"""Interface of a worker program, for threads and processes, and transport of its errors to the consumer."""

from __future__ import annotations

import pickle
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ziggurat.dataflow.parallel.functions import dump
from ziggurat.dataflow.policy import Failure

__all__ = ["Fault", "Program", "seed_global_generators"]


@dataclass(frozen=True)
class Fault:
    """One datapoint that failed in a worker.

    Args:
        failure: the error in words, with the worker's traceback.
        index: number of the datapoint in the pass.
        cause: the exception, or its pickled form, where it could be carried.
    """

    failure: Failure
    index: int
    cause: Exception | bytes | None = None

    @classmethod
    def of(cls, error: BaseException, *, index: int) -> Self:
        """Describe ``error``."""
        cause = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
        failure = Failure.of(cause, key=index)
        return cls(failure, index, cause)

    def portable(self) -> Fault:
        """Return the same without live objects, for another process."""
        carried = None
        try:
            carried = dump(self.cause, upwards=True)
            pickle.loads(carried)
        except Exception:  # whatever a user's exception class may raise
            carried = None
        return Fault(self.failure, self.index, carried)

    def exception(self) -> Exception | None:
        """Return the exception itself, where it could be carried."""
        if not isinstance(self.cause, bytes):
            return self.cause
        try:
            return pickle.loads(self.cause)
        except Exception:  # its class is known in the worker only
            return None


class Program(ABC):
    """What one worker does with its tasks."""

    index = 0
    """Number of the datapoint that is being computed."""

    @abstractmethod
    def for_worker(self, worker: int) -> Program:
        """Return what worker ``worker`` runs; called there, once."""

    @abstractmethod
    def run(self, task: Any) -> Any:
        """Do one task; errors of datapoints are part of the result."""

    def unsendable(self, error: Exception, _result: Any) -> Fault:
        """Describe why a result cannot leave the worker."""
        return Fault.of(error, index=self.index)


def seed_global_generators(*words: object) -> None:
    """Seed ``random`` and ``numpy.random``, which user code may draw from, in a way that depends on ``words``."""
    generator = random.Random(repr(words))
    random.seed(generator.getrandbits(64))
    np.random.seed(generator.getrandbits(32))
