"""Error policy for datapoints that cannot be read or mapped (raise, skip, or log and skip), with counts.

One ``ErrorPolicy`` belongs to one stage. Serial stages call ``handle(error, key=…)`` in an ``except Exception``; a
worker converts the exception to a ``Failure``, and the parent passes it to ``take(failure)``. Both return only where
the datapoint is to be dropped.
"""

from __future__ import annotations

import logging
import traceback
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

from ziggurat.errors import DataError, DatapointError, DataWorkerError, UsageError, ZigguratError

__all__ = ["ErrorCounts", "ErrorPolicy", "Failure", "OnError"]

OnError = Literal["raise", "skip", "log"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """One datapoint that could not be used, in words: it crosses process borders and fits in JSON.

    Args:
        key: what names the datapoint: a path, a record key, or its number in the pass.
        kind: class name of the exception.
        reason: its message.
        traceback: its traceback as text.
        skippable: False for an error that is not the datapoint's, such as a missing package; it is always raised.
    """

    key: str | int
    kind: str
    reason: str
    traceback: str = ""
    skippable: bool = True

    @classmethod
    def of(cls, error: Exception, *, key: Any) -> Self:
        """Describe ``error``; ``key`` names the datapoint unless the error has a key of its own."""
        own = isinstance(error, DatapointError)
        name = error.key if own else key
        return cls(
            key=name if isinstance(name, int) else str(name),
            kind=type(error).__name__,
            reason=error.reason if own else str(error),
            traceback="".join(traceback.format_exception(error)),
            skippable=_is_of_the_datapoint(error),
        )

    def sentence(self) -> str:
        """Return the reason as it stands in an error's text."""
        text = self.reason if self.kind == DatapointError.__name__ else f"{self.kind}: {self.reason}".rstrip(": ")
        return text if text.endswith((".", "!", "?")) else f"{text}."


@dataclass(frozen=True)
class ErrorCounts:
    """What one stage dropped so far.

    Args:
        total: number of datapoints dropped.
        by_kind: the same by class name of the exception.
        first: the first of them, as (key, reason), oldest first.
    """

    total: int
    by_kind: dict[str, int]
    first: list[tuple[str | int, str]]


class ErrorPolicy:
    """Decides about datapoints that cannot be used, and counts those that are dropped.

    Args:
        on_error: ``"raise"`` a ``DatapointError`` that names the datapoint; ``"skip"`` it (the first is logged, all are
            counted); or ``"log"`` each as a warning and skip it.
        at_most: raise all the same as soon as more than this number were dropped; None: never.
        remember: how many of the first keys and reasons are kept.

    An error that is not the datapoint's fault (a missing package, wrong arguments, no memory) is raised in any case.
    """

    def __init__(self, on_error: OnError = "raise", *, at_most: int | None = None, remember: int = 10) -> None:
        if on_error not in get_args(OnError):
            raise UsageError(
                '`on_error` is one of "raise", "skip" and "log".',
                received=repr(on_error),
                advice="Choose one, or give an `ErrorPolicy`.",
            )
        self.on_error: OnError = on_error
        self.at_most = at_most
        self.remember = remember
        self._by_kind: dict[str, int] = {}
        self._first: list[tuple[str | int, str]] = []

    @classmethod
    def of(cls, on_error: OnError | ErrorPolicy) -> ErrorPolicy:
        """Return the policy that an argument ``on_error`` means."""
        return on_error if isinstance(on_error, ErrorPolicy) else ErrorPolicy(on_error)

    def handle(self, error: Exception, *, key: Any) -> None:
        """Drop the datapoint ``key`` because of ``error``, or raise.

        Raises:
            DatapointError: with ``error`` as its cause; an error that is one already is raised as it is.
            ZigguratError, MemoryError: ``error`` itself, where it is not the datapoint's.
        """
        failure = Failure.of(error, key=key)
        if self._drops(failure):
            return
        if isinstance(error, DatapointError) or not failure.skippable:
            error.add_note(f"(datapoint {key!r} of the pass)")
            if self.on_error != "raise" and failure.skippable:
                error.add_note(f"More than {self.at_most} datapoints had to be dropped: look at the data.")
            raise error
        raise self._error(failure) from error

    def take(self, failure: Failure, cause: Exception | None = None) -> None:
        """Do the same for a failure in a worker.

        Args:
            failure: what the worker says.
            cause: the exception itself, where it could be carried over.

        Raises:
            DatapointError: from ``cause``, with the worker's traceback as a note.
            Exception: ``cause`` where the error was not the datapoint's; without it a ``DataWorkerError``.
        """
        if self._drops(failure):
            return
        error = cause if cause is not None and not failure.skippable else self._error(failure)
        if cause is None and not failure.skippable:
            error = DataWorkerError(
                f"A worker of the data pipeline raised {failure.kind} at datapoint {failure.key!r}.",
                received=failure.reason,
                worker_traceback=failure.traceback,
                details={"key": str(failure.key)},
            )
        error.add_note(f"In the worker:\n{failure.traceback}")
        raise error from (None if error is cause else cause)

    def counts(self) -> ErrorCounts:
        """Return what was dropped so far."""
        return ErrorCounts(sum(self._by_kind.values()), dict(self._by_kind), list(self._first))

    def state(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return asdict(self.counts())

    def load_state(self, state: dict[str, Any] | None) -> None:
        """Take the counts of ``state()`` back; None starts at zero."""
        self._by_kind = dict(state["by_kind"]) if state else {}
        self._first = [(key, reason) for key, reason in state["first"]] if state else []

    def _drops(self, failure: Failure) -> bool:
        """Count and tell, where the policy says that the datapoint is dropped."""
        if self.on_error == "raise" or not failure.skippable:
            return False
        dropped = sum(self._by_kind.values()) + 1
        if self.at_most is not None and dropped > self.at_most:
            return False
        self._by_kind[failure.kind] = self._by_kind.get(failure.kind, 0) + 1
        if len(self._first) < self.remember:
            self._first.append((failure.key, failure.sentence()))
        if self.on_error == "log" or dropped == 1:
            rest = "" if self.on_error == "log" else " Further ones are counted only: see `error_counts()`."
            _logger.warning("Datapoint %r was skipped: %s%s", failure.key, failure.sentence(), rest)
        return True

    def _error(self, failure: Failure) -> DatapointError:
        advice = 'Repair it, or drop such datapoints with `on_error="skip"`.'
        if self.on_error != "raise":
            advice = f"More than {self.at_most} datapoints had to be dropped: look at the data."
        return DatapointError(failure.key, failure.sentence(), advice=advice)


def _is_of_the_datapoint(error: Exception) -> bool:
    if isinstance(error, ZigguratError):
        return isinstance(error, DataError) and not isinstance(error, DataWorkerError)
    return not isinstance(error, MemoryError)
