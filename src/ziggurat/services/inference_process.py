"""Studio side of one inference process: started, shared by many threads, and ended as a whole process group."""

from __future__ import annotations

import itertools
import os
import select
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from ziggurat.entities.processes import ProcessGroup, last_line
from ziggurat.errors import DataError, JobError, ZigguratError, error_of_family
from ziggurat.records.codec import LENGTH, pack, read_frame

__all__ = [
    "ProcessEndedError",
    "WarmProcess",
    "send_frame",
]


def send_frame(descriptor: int, value: Any, last: float) -> None:
    """Write a value to a pipe that does not block.

    Args:
        descriptor: of the pipe.
        value: plain data.
        last: when to give up, by ``time.monotonic()``.

    Raises:
        TimeoutError: if the other side does not read for so long; part of the message may have been written.
        OSError: where the reader is gone.
        EncodingError: where the value is not plain.
    """
    message = pack(value)
    for part in (LENGTH.pack(len(message)), message):
        _write(descriptor, memoryview(part), last)


def _write(descriptor: int, left: memoryview, last: float) -> None:
    writable = select.poll()
    writable.register(descriptor, select.POLLOUT)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            left_ms = (last - time.monotonic()) * 1000
            if left_ms <= 0 or not writable.poll(left_ms):
                raise TimeoutError from None


_READY: Final = 0
"""The ``id`` of the first message."""

_END_WITHIN_S: Final = 3.0


class WarmProcess:
    """A process that holds a network. Any thread may call any method.

    Args:
        folder: the job folder.
        command: starts it, all arguments included.
        environment: of the process.
        log: file that its output is appended to; begun anew where it has grown beyond 1 MiB.
        start_timeout_s: longest time until it is ready.

    Raises:
        StorageError: where the log cannot be written or no process can be made.
    """

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        start_timeout_s: float,
    ) -> None:
        self.folder = folder
        self.log = log
        self.answered = 0
        """Requests that it has answered."""
        self._start_timeout_s = start_timeout_s
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._numbers = itertools.count(_READY + 1)
        self._ready: Future[Any] = Future()
        self._waiting: dict[int, Future[Any]] = {_READY: self._ready}
        self._answered_at = time.monotonic()
        self._exit_code: int | None = None
        self._is_over = False
        self._why = ""
        self._group = ProcessGroup(command, environment, log)
        self._reader = threading.Thread(target=self._read, name=f"answers of {self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process number, which is also that of its group."""
        return self._group.pid

    @property
    def is_ready(self) -> bool:
        """Whether its network is open."""
        return self._ready.done() and self._ready.exception() is None and not self._is_over

    def wait_until_ready(self) -> Mapping[str, Any]:
        """Wait until the network is open; return its description.

        Raises:
            ZigguratError: of the family of what went wrong.
            JobError: where it takes too long; the process is ended then.
        """
        try:
            return self._ready.result(self._start_timeout_s)
        except TimeoutError:
            self.kill("it was not ready in time and was ended")
            raise JobError(
                f"The warm process of {self.folder} must be ready within {self._start_timeout_s:g} s.",
                advice=f"Look at its output in {self.log}.",
                details={"folder": str(self.folder), "limit_s": self._start_timeout_s},
            ) from None

    def ask(self, what: str, fields: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Return the answer to a request.

        Args:
            what: to do, such as ``predict``.
            fields: of the request.
            timeout_s: longest time to wait. A process without an answer for so long is killed.

        Raises:
            ZigguratError: of the family of what went wrong there.
            ProcessEndedError: where the process ended instead.
            JobError: where the answer takes too long.
        """
        began = time.monotonic()
        number, answer = next(self._numbers), Future[Any]()
        with self._lock:
            if self._is_over:
                raise self._ended(may_retry=True)
            self._waiting[number] = answer
        try:
            self._send({"id": number, "do": what, **fields}, began + timeout_s)
            return answer.result(max(0.0, began + timeout_s - time.monotonic()))
        except TimeoutError:
            is_stuck = self._answered_at < began
            if is_stuck:
                self.kill(STUCK)
            raise too_long(self.folder, timeout_s, self.log, is_stuck=is_stuck) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)

    def is_alive(self) -> bool:
        """Return whether it lives; where it died, what it started is ended."""
        if not self._is_over and self._group.has_exited():
            self._group.signal(signal.SIGKILL)  # a child of its that holds the pipe would keep the reader waiting
            self._reader.join(_END_WITHIN_S)
        return not self._is_over

    def close(self) -> None:
        """Let it end, and kill what has not ended in 3 s; requests that wait get an error. Closing twice is fine."""
        self._why = self._why or "it was ended to free what it held"
        self._group.signal(signal.SIGTERM)
        self._reader.join(_END_WITHIN_S)
        self.kill(self._why)

    def kill(self, why: str) -> None:
        """End it at once, with all that it started, and tell those who wait why."""
        self._why = self._why or why
        self._group.signal(signal.SIGKILL)
        self._reader.join(_END_WITHIN_S)

    def _send(self, message: Mapping[str, Any], last: float) -> None:
        try:
            if not self._sending.acquire(timeout=max(0.0, last - time.monotonic())):
                raise TimeoutError
            try:
                send_frame(self._group.messages_in.fileno(), message, last)
            finally:
                self._sending.release()
        except TimeoutError:
            self.kill(STUCK)  # half a message may stand in the pipe: nothing after it could be understood
            raise
        except ZigguratError:
            raise  # no plain data, so nothing was sent
        except (OSError, ValueError):
            self._reader.join(_END_WITHIN_S)  # it learns how the process ended
            raise self._ended(may_retry=True) from None

    def _read(self) -> None:
        """Hand out answers until there are none; then bury the process and tell everybody who waits."""
        within_s = _END_WITHIN_S
        try:
            while (message := read_frame(self._group.messages_out)) is not None:
                self._take(message)
        except (DataError, OSError, KeyError, TypeError, AttributeError):
            within_s = 0.0  # it speaks another language: user code wrote into the pipe
            self._why = self._why or "it sent what is no answer and was ended"
        self._exit_code = self._group.bury(within_s)
        with self._lock:
            self._is_over = True
            waiting, self._waiting = self._waiting, {}
        for number, answer in waiting.items():
            # A process that ended because it was idle met a request at the same moment.
            answer.set_exception(self._ended(may_retry=number != _READY and self._exit_code == 0))
        self._group.messages_out.close()
        with self._sending:  # a sender must not write into a reused descriptor
            self._group.messages_in.close()

    def _take(self, message: Mapping[str, Any]) -> None:
        error = error_of_family(message["error"], message["exit_code"]) if "error" in message else None
        result = message["result"] if error is None else None
        with self._lock:
            answer = self._waiting.pop(message["id"], None)
            self._answered_at = time.monotonic()
            self.answered += message["id"] != _READY
        if answer is None:
            return  # the caller did not wait
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def _ended(self, *, may_retry: bool) -> ZigguratError:
        may_retry = may_retry and not self._why
        return ended(self.folder, self._exit_code, self.log, why=self._why, may_retry=may_retry)


STUCK: Final = "it did not answer and was killed"


class ProcessEndedError(JobError):
    """A warm process ended without an answer.

    ``may_retry`` says whether the request did not begin there: another process can take it without harm.
    """

    may_retry: bool = False


def ended(
    folder: Path, exit_code: int | None, log: Path, *, why: str = "", may_retry: bool = False
) -> ProcessEndedError:
    """Return the error for a process that is gone.

    Args:
        folder: the job folder.
        exit_code: of the process, negative for the signal that killed it; None if unknown.
        log: its output.
        why: it was ended from here; empty where it was not.
        may_retry: as in the error.
    """
    if why or exit_code is None:
        how, advice = why or "it is gone", "Ask again: a new one is started."
    elif exit_code < 0:
        how = f"it was killed by {_signal_name(-exit_code)}"
        advice = "Ask again: a new one is started. Out of memory is the usual reason: free some, or send fewer images."
    else:
        said = last_line(log)
        how = f"exit code {exit_code}" + (f"; its last line: {said}" if said else "")
        advice = f"Look at its output in {log}."
    error = ProcessEndedError(
        f"The warm process of {folder} must answer before it ends.",
        received=how,
        advice=advice,
        details={"folder": str(folder), "exit_code": exit_code},
    )
    error.may_retry = may_retry
    return error


def too_long(folder: Path, limit_s: float, log: Path, *, is_stuck: bool) -> JobError:
    """Return the error for an answer that did not come in time.

    Args:
        folder: the job folder.
        limit_s: how long was waited.
        log: output of the process.
        is_stuck: whether it gave no answer in that time and was killed.
    """
    return JobError(
        f"The warm process of {folder} must answer within {limit_s:g} s.",
        received=f"no answer; {STUCK}" if is_stuck else "no answer; it is busy with other requests",
        advice=f"Look at its output in {log}, or ask with more time.",
        details={"folder": str(folder), "limit_s": limit_s, "is_stuck": is_stuck},
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"
