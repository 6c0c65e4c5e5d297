"""Outbox of one receiver of notifications: a bounded queue and a thread that delivers with retries."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["RETRY_AFTER_S", "DeliveryError", "Message", "Outbox", "Outcome"]

_LOG: Final = logging.getLogger(__name__)

RETRY_AFTER_S: Final = (2.0, 10.0, 60.0, 300.0)
"""Seconds before each further try."""

_MOST_WAITING: Final = 100


class DeliveryError(Exception):
    """A message was not delivered.

    Args:
        text: why, without secrets.
        is_final: whether another try would fail in the same way.
    """

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


@dataclass(frozen=True, kw_only=True)
class Message:
    """A notification.

    Args:
        kind: ``finished``, ``failed``, ``diverged``, ``disk_low`` or ``test``.
        title: one line, such as ``Run finished: lenet``.
        text: one or more sentences.
        time: when it happened, in seconds since 1970.
        details: further JSON values, such as the job.
    """

    kind: str
    title: str
    text: str
    time: float
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one delivery.

    Args:
        title: of the message.
        time: when it was over, in seconds since 1970.
        problem: why it failed; empty if it was delivered.
    """

    title: str
    time: float
    problem: str = ""


class Outbox:
    """Delivers messages one after the other in a thread of its own. ``put`` never waits.

    Args:
        name: of the receiver, for the log: no secret.
        send: delivers a message or raises a ``DeliveryError``; it limits its own time.
        retry_after_s: seconds before each further try of a message.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        name: str,
        send: Callable[[Message], None],
        *,
        retry_after_s: Sequence[float] = RETRY_AFTER_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._send = send
        self._retry_after_s = tuple(retry_after_s)
        self._clock = clock
        self._waiting: deque[tuple[Message, bool, Future[Outcome]]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._last: Outcome | None = None
        threading.Thread(target=self._work, name=f"notify-{name}", daemon=True).start()

    @property
    def last(self) -> Outcome | None:
        """Result of the newest delivery; None before the first."""
        return self._last

    def put(self, message: Message, *, once: bool = False) -> Future[Outcome]:
        """Queue a message; the oldest one is dropped if too many wait. The future gets its result.

        Args:
            message: to deliver.
            once: whether it is tried only once.
        """
        found: Future[Outcome] = Future()
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                dropped, _, result = self._waiting.popleft()
                _LOG.warning("%s: too many messages wait; dropped: %s", self._name, dropped.title)
                result.cancel()
            self._waiting.append((message, once, found))
            self._changed.notify_all()
        return found

    def close(self) -> None:
        """End the thread after what it does now, without waiting for it; what waits is dropped."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while (next_one := self._next()) is not None:
            message, once, result = next_one
            outcome = self._deliver(message, () if once else self._retry_after_s)
            self._last = outcome
            result.set_result(outcome)

    def _next(self) -> tuple[Message, bool, Future[Outcome]] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return None if self._is_closed else self._waiting.popleft()

    def _deliver(self, message: Message, retry_after_s: Sequence[float]) -> Outcome:
        problem = ""
        for pause_s in (*retry_after_s, None):
            try:
                self._send(message)
                return Outcome(title=message.title, time=self._clock())
            except DeliveryError as error:
                problem, is_final = str(error), error.is_final
            except Exception as error:  # the thread must live; the text of a strange error may hold a secret
                problem, is_final = f"unexpected {type(error).__name__}", False
            if pause_s is None or is_final or self._ends_within(pause_s):
                break
            _LOG.info("%s: %s; trying again", self._name, problem)
        _LOG.warning("%s: not delivered: %s (%s)", self._name, problem, message.title)
        return Outcome(title=message.title, time=self._clock(), problem=problem)

    def _ends_within(self, pause_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed, pause_s)
