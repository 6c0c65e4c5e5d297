"""One job that runs on another machine, as the bridge follows it: seeded, started, mirrored, and given up on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from ziggurat.cluster.exchange import APPENDED, Reply, Request, mirrored_files
from ziggurat.cluster.mirror import Mirror
from ziggurat.errors import ZigguratError
from ziggurat.layout import JobFolder

__all__ = ["FollowedJob", "RemoteWorker", "UnreachableError"]

_PART_BYTES: Final = 1 << 20
_START_PATIENCE_S: Final = 60.0
_AGAIN_S: Final = 0.5
_SLACK_S: Final = 2.0
"""So long after the end of a lease the job is given up: clocks run at different speeds."""


class UnreachableError(Exception):
    """The node, or the process there that holds the worker, did not answer."""


class RemoteWorker(Protocol):
    """A ``NodeWorker`` on another machine. Every method may raise an ``UnreachableError``."""

    def receive(self, name: str, offset: int, data: bytes) -> None:
        """Write a part of a file of the job."""
        ...

    def start(self, devices: Sequence[int], environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Start the worker, once."""
        ...

    def exchange(self, request: Request) -> Reply:
        """Return what the mirror lacks."""
        ...

    def terminate(self) -> None:
        """Send the worker SIGTERM."""
        ...

    def kill(self) -> None:
        """End the worker."""
        ...

    def remove(self) -> None:
        """Remove the folder there, and the process that holds the worker."""
        ...


class FollowedJob:
    """A job on a node. One thread calls ``begin`` and ``look``; any may call the others.

    Args:
        folder: the job folder of the studio.
        attempt: number of the attempt.
        worker: the worker on its node.
        lease_s: how long a lease holds.
        clock: seconds, never going back.
        closing: set when the bridge ends.
    """

    def __init__(
        self,
        folder: Path,
        attempt: int,
        worker: RemoteWorker,
        lease_s: float,
        clock: Callable[[], float],
        closing: threading.Event,
    ) -> None:
        self._closing = closing
        self.folder = folder
        self.attempt = attempt
        self._worker = worker
        self._lease_s = lease_s
        self._clock = clock
        self._mirror: Mirror | None = None
        self._answered = clock()
        self._asked: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._stop = ""
        self.state: dict[str, Any] = {"state": "running"}
        """``state`` is ``running``, ``ended`` with an ``exit_code``, or ``lost``; ``problem`` says what is wrong."""

    # ---- what the studio asks for

    def ask_to_stop(self, reason: str) -> None:
        """Let the worker save and end, at the next exchange."""
        self._stop = reason

    def terminate(self) -> None:
        """Let the worker get SIGTERM, at the next exchange."""
        with self._lock:
            self._asked.append(self._worker.terminate)

    def kill(self) -> None:
        """Let the worker be killed, at the next exchange."""
        with self._lock:
            self._asked.append(self._worker.kill)

    # ---- the thread that follows it

    def begin(self, devices: Sequence[int], environment: Mapping[str, str]) -> None:
        """Send the folder to the node and start the worker; what goes wrong is the end of the attempt."""
        try:
            _drop_torn_line(self.folder / APPENDED[0])
            own = JobFolder(Path())
            for name in (own.spec.name, own.record.name, *APPENDED, *mirrored_files(self.folder)):
                self._send(name)
            self._insist(self._worker.start, devices, environment)
            self._answered = self._clock()
        except UnreachableError:
            self.state = {"state": "lost"}
        except (ZigguratError, OSError) as error:
            with JobFolder(self.folder).log.open("a", encoding="utf-8") as log:
                log.write(f"Error: the worker could not be started on its node: {error}\n")
            self.state = {"state": "ended", "exit_code": 1}

    def look(self) -> None:
        """Exchange once with the node, and judge what it says."""
        if self.state["state"] != "running":
            return
        try:
            self._exchange()
        except UnreachableError:
            if self._clock() - self._answered > self._lease_s + _SLACK_S:
                self.state = {"state": "lost"}
        except (ZigguratError, OSError) as error:  # such as a full disk of the studio
            self.state = {"state": "running", "problem": str(error)}

    def _exchange(self) -> None:
        if self._mirror is None:
            self._mirror = Mirror(self.folder, self.attempt)
        with self._lock:
            asked, self._asked = self._asked, []
        for act in asked:
            act()
        reply = self._worker.exchange(self._mirror.request(self._stop))
        self._answered = self._clock()
        self._mirror.take(reply)
        if reply.has_ended and self._mirror.is_whole:
            self._mirror.close()
            self._worker.remove()
            self.state = {"state": "ended", "exit_code": reply.exit_code}
        else:
            self.state = {"state": "running"}

    def _insist(self, act: Callable[..., object], *values: Any) -> None:
        """Do something again until it is answered: a new process takes a while on a busy machine."""
        while True:
            try:
                act(*values)
                self._answered = self._clock()
                return
            except UnreachableError:
                is_over = self._clock() > self._answered + _START_PATIENCE_S
                if is_over or self._closing.wait(_AGAIN_S):
                    raise

    def _send(self, name: str) -> None:
        try:
            with (self.folder / name).open("rb") as file:
                offset = 0
                while (part := file.read(_PART_BYTES)) or not offset:
                    self._insist(self._worker.receive, name, offset, part)
                    offset += len(part)
                    if not part:
                        return
        except FileNotFoundError:
            return


def _drop_torn_line(events: Path) -> None:
    """Remove the part of a line that a killed worker left at the end: the next worker would remove it on its node."""
    if not events.exists():
        return
    content_end = events.read_bytes().rfind(b"\n") + 1
    if content_end < events.stat().st_size:
        os.truncate(events, content_end)
